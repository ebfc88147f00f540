import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';

/** Options of a run of the command line. */
export interface RunOptions {
  /** SVC_HOME; also the parent of HOME, so that the files of the user who runs the tests stay untouched. */
  readonly home: string;
  /** Added to a small environment; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Standard input; empty by default. */
  readonly input?: string;
  /** Runs it on a new terminal; standard output then contains all of its output. */
  readonly tty?: boolean;
  /** Runs it as this user and group; only root can. */
  readonly uid?: number;
  readonly timeoutMs?: number;
  /** The checkout whose `svc` is run; by default this one. */
  readonly from?: string;
}

/** The result of a command. `code` is null when a signal ended it. */
export interface RunResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The root of this checkout. */
export const checkout = resolve(import.meta.dirname, '../..');

const node = join(checkout, 'node_modules/.bin/node');
const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The environment of every command: only the temporary folder comes from the caller. */
export function testEnv({ home, env = {}, uid = userInfo().uid }: RunOptions): Record<string, string | undefined> {
  return {
    PATH: systemPath,
    HOME: join(home, 'home'),
    SVC_HOME: home,
    TMPDIR: process.env['TMPDIR'],
    LANG: 'C.UTF-8',
    NODE_COMPILE_CACHE: join(tmpdir(), `svc-test-compile-${uid}`),
    ...env,
  };
}

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Starts `svc` for tests that act while it runs. The caller ends it. */
export function startSvc(args: readonly string[], options: RunOptions): ChildProcess {
  const user = options.uid === undefined ? [] : ['setpriv', `--reuid=${options.uid}`, `--regid=${options.uid}`, '--clear-groups', '--'];
  const command = [...user, node, join(options.from ?? checkout, 'src/cli/main.ts'), ...args];
  // script(1) is the one tool on every Debian that allocates a terminal for a program.
  const onTerminal = ['script', '--quiet', '--return', '--command', command.map(quote).join(' '), '/dev/null'];
  const [program = '', ...rest] = options.tty === true ? onTerminal : command;
  const child = spawn(program, rest, { cwd: options.cwd ?? checkout, env: testEnv(options), stdio: ['pipe', 'pipe', 'pipe'] });
  // A command that exits early closes its input pipe; that is no test failure.
  child.stdin.on('error', () => undefined);
  if (options.tty !== true || options.input !== undefined) child.stdin.end(options.input ?? '');
  return child;
}

/** Waits for a started command and collects its output. */
export async function finish(child: ChildProcess, timeoutMs = 600_000): Promise<RunResult> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  await once(child, 'close');
  clearTimeout(timer);
  return { code: child.exitCode, signal: child.signalCode, stdout, stderr };
}

/** Runs `svc` as a user types it and waits for its end. */
export function runSvc(args: readonly string[], options: RunOptions): Promise<RunResult> {
  return finish(startSvc(args, options), options.timeoutMs);
}

/** The same for a command that must succeed; returns its standard output. */
export async function svcOk(args: readonly string[], options: RunOptions): Promise<string> {
  const { code, signal, stdout, stderr } = await runSvc(args, options);
  if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code ?? signal}:\n${stderr}\n${stdout}`);
  return stdout;
}
