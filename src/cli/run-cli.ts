import type { Clock } from '../shared/clock.ts';
import { exitCodes } from '../shared/error-codes.ts';
import { SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Places } from '../provision/places.ts';
import { commandGroups, commands } from './command-table.ts';
import type { Connection } from './connection.ts';
import { showError } from './error-text.ts';
import { parseCommandLine } from './program.ts';
import { columnsOf, type Streams } from './streams.ts';
import { createUi, Interrupted } from './ui.ts';

/** Everything outside that a run of the command line touches. */
export interface World {
  readonly streams: Streams;
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  readonly cwd: string;
  readonly paths: HomePaths;
  readonly version: string;
  readonly connection: Connection;
  /** The places as seen from here; loaded when they are first needed. */
  readonly places: () => Promise<Places>;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** 128 + SIGINT, as shells report it. */
const interruptedCode = 130;

/** Help is not set wider than this: long lines are hard to read. */
const widestHelp = 100;

/** Runs one command line, the words after `svc`, to its end and gives the exit code. Never throws. */
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
    const code = await parsed.command.run(parsed.args, { ...world, ui });
    return signal.aborted ? interruptedCode : (code ?? 0);
  } catch (error) {
    // What a command throws because it was interrupted is no news to whoever interrupted it.
    return signal.aborted || error instanceof Interrupted ? interruptedCode : reportFailure(error, argv, world);
  }
}

/** Shows what went wrong, as text or JSON, and gives the exit code for it. */
export function reportFailure(error: unknown, argv: readonly string[], world: World): number {
  showError(error, createUi(world.streams, world), { json: wantsJson(argv), debug: world.env('SVC_DEBUG') !== undefined });
  return error instanceof SvcError ? exitCodes[error.kind] : exitCodes.internal;
}

/** Looked up in the words themselves, so that a mistyped command line is answered in JSON too. */
function wantsJson(argv: readonly string[]): boolean {
  const dashes = argv.indexOf('--');
  return (dashes < 0 ? argv : argv.slice(0, dashes)).includes('--json');
}
