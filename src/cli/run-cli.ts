import type { Clock } from '../shared/clock.ts';
import { exitCodes } from '../shared/error-codes.ts';
import { SvcError, toErrorReply } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Providers } from '../provision/providers.ts';
import { commandGroups, commands } from './command-table.ts';
import { announcing } from './connection/connection.ts';
import type { Connection } from './connection/controller-connection.ts';
import { parseCommandLine } from './program.ts';
import { type Streams, columnsOf } from './streams.ts';
import { Interrupted, type Ui, createUi } from './ui.ts';
import { oneLine, safeLines } from './listing/display-text.ts';

/** All external state that a run of the command line accesses. */
export interface World {
  readonly streams: Streams;
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  readonly cwd: string;
  readonly paths: HomePaths;
  readonly version: string;
  readonly connection: Connection;
  /** The providers as this machine sees them; loaded at first use. */
  readonly providers: () => Promise<Providers>;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** 128 + SIGINT, as shells report it. */
const interruptedCode = 130;

/** Maximum columns of help: longer lines are hard to read. */
const widestHelp = 100;

/** Runs one command line, the words after `svc`, and returns the exit code. Never throws. */
export async function runCli(argv: readonly string[], world: World): Promise<number> {
  const { streams, signal } = world;
  const ui = createUi(streams, world);
  try {
    const width = streams.stdout.isTTY === true ? Math.min(columnsOf(streams.stdout), widestHelp) : 80;
    const parsed = parseCommandLine(argv, { commands, groups: commandGroups, version: world.version, width });
    if (parsed.type === 'show') {
      streams[parsed.to].write(ui.asTyped(parsed.text));
      return parsed.exitCode;
    }
    if (parsed.type === 'unknown') {
      const { unknownCommand } = await import('./unknown-command.ts');
      throw unknownCommand(parsed.group, parsed.word, { commands, groups: commandGroups });
    }
    const code = await parsed.command.run(parsed.args, { ...world, connection: announcing(world.connection, () => ui.waiting()), ui });
    return signal.aborted ? interruptedCode : (code ?? 0);
  } catch (error) {
    // The user interrupted the command, so its resulting error is not reported.
    return signal.aborted || error instanceof Interrupted ? interruptedCode : reportFailure(error, argv, world);
  }
}

/** Shows an error as text or JSON, and returns its exit code. */
export function reportFailure(error: unknown, argv: readonly string[], world: World): number {
  showError(error, createUi(world.streams, world), { json: isJsonRequested(argv), debug: world.env('SVC_DEBUG') !== undefined });
  return error instanceof SvcError ? exitCodes[error.kind] : exitCodes.internal;
}

/** Searches the raw words, so that a mistyped command line also gets a JSON error. */
function isJsonRequested(argv: readonly string[]): boolean {
  const dashes = argv.indexOf('--');
  return (dashes < 0 ? argv : argv.slice(0, dashes)).includes('--json');
}

interface ErrorOptions {
  /** One JSON document on standard output instead of text on standard error. */
  readonly json: boolean;
  /** Adds the stack trace, for bugs (`SVC_DEBUG=1`). */
  readonly debug: boolean;
}

function showError(error: unknown, ui: Ui, options: ErrorOptions): void {
  const reply = toErrorReply(error);
  if (options.json) ui.json(reply);
  else {
    const { code, message, hint, problems } = reply.error;
    // The user's own decision is not an error.
    if (code === 'SVC_ABORTED') {
      ui.say(oneLine(message));
      return;
    }
    const [first = '', ...rest] = safeLines(message);
    ui.say(`${ui.paintMessage('bad', 'error:')} ${first}`);
    for (const line of rest) ui.quote(line);
    for (const problem of problems) {
      ui.say('');
      ui.say(`${ui.paintMessage('strong', `${oneLine(problem.file)}:${problem.line}:${problem.column}:`)} ${oneLine(problem.message)}`);
      if (problem.excerpt !== undefined) for (const line of safeLines(problem.excerpt)) ui.quote(`  ${line}`);
      if (problem.hint !== undefined) ui.say(`  ${ui.paintMessage('quiet', 'hint:')} ${oneLine(problem.hint)}`);
    }
    if (problems.length > 0) ui.say('');
    ui.say(`${ui.paintMessage('quiet', 'hint:')} ${oneLine(hint)}`);
    ui.say(`${ui.paintMessage('quiet', 'code:')} ${code}`);
  }
  if (options.debug && error instanceof Error) ui.quote(error.stack ?? '');
}
