import type { Clock } from '../../shared/clock.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { AddressOptions, CopyToOptions, ExecOptions, ExecResult, Remote, RemoteCallOptions } from '../remote.ts';
import { runCaptured } from './captured.ts';
import { copyToMachine } from './copy.ts';
import { followRemoteFile } from './follow.ts';
import type { SessionMachine } from './session-machine.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { plainWords, workError } from './work-error.ts';

/** A machine used through sessions, alike for every carrier. Subclasses implement the route to its ports. */
export abstract class SessionRemote implements Remote {
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly limit: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly #clock: Clock;

  constructor({
    baseDir,
    enter,
    limit = [],
    environment,
    clock,
  }: Pick<Remote, 'baseDir' | 'enter' | 'limit' | 'environment'> & { readonly clock: Clock }) {
    this.baseDir = baseDir;
    this.enter = enter;
    this.limit = limit;
    this.environment = environment;
    this.#clock = clock;
  }

  abstract address(port: number, options?: AddressOptions): Promise<ReplicaAddress>;
  abstract forwardSocket(remotePath: string, options?: RemoteCallOptions): Promise<string>;

  /** Called for each operation, and again after a broken connection. */
  protected abstract work(): Promise<SessionMachine>;

  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    const { env, cwd, input = '', timeoutMs, signal, detached } = options;
    const { exitCode, stdout, stderr } = await runCaptured(await this.work(), {
      argv,
      env: { ...this.environment, ...env },
      cwd,
      input: detached === true ? 'detached' : Buffer.from(input, 'utf8'),
      timeoutMs,
      signal,
    });
    return { exitCode, stdout, stderr };
  }

  async copyTo(localDir: string, remoteDir: string, options: CopyToOptions = {}): Promise<void> {
    await copyToMachine(await this.work(), localDir, remoteDir, options);
  }

  async writeFile(remotePath: string, content: string, mode = 0o600): Promise<void> {
    await writeRemoteFile(await this.work(), remotePath, content, mode);
  }

  async readFile(remotePath: string): Promise<string | undefined> {
    return readRemoteFile(await this.work(), remotePath);
  }

  watch(remotePath: string, onChange: () => void, signal: AbortSignal): void {
    void watchRemoteFile(() => this.work(), remotePath, onChange, this.#clock, signal);
  }

  follow(remotePath: string, offset: number, signal: AbortSignal): AsyncIterable<Buffer> {
    return followRemoteFile(() => this.work(), remotePath, offset, this.#clock, signal);
  }

  localPath(): undefined {
    return undefined;
  }
}

/** Files are read whole; svc reads none near this size. */
const maxFileBytes = 268_435_456;

/** Exit code for a missing file. No tool of the script returns it. */
const notThere = 44;

/**
 * Tests for existence, because shells' messages differ. Opening a missing file distinguishes it from a file in a folder
 * without search permission. A file may appear at any moment. A file that vanishes during the read (below /proc: its
 * process ended) counts as missing.
 */
const readScript = `[ -e "$1" ] || true < "$1" || exit ${notThere}
cat < "$1" && exit 0
[ -e "$1" ] || exit ${notThere}
exit 1`;

/** Checks the length first: a truncated transfer must not replace the old file. */
const writeScript = `umask 077
mkdir -p -- "\${1%/*}/" || exit 1
trap 'rm -f -- "$2"' EXIT
cat > "$2" && [ "$(wc -c < "$2")" -eq "$4" ] && chmod "$3" "$2" && mv -f -- "$2" "$1"`;

/** Undefined when the file does not exist. */
export async function readRemoteFile(machine: SessionMachine, path: string): Promise<string | undefined> {
  const argv = ['sh', '-c', readScript, 'sh', path];
  const result = await runCaptured(machine, { argv, env: plainWords, isRepeatable: true, maxBytes: maxFileBytes });
  if (result.exitCode === 0) return result.stdout;
  if (isAbsent(result)) return undefined;
  throw workError(machine, `The file ${path} could not be read`, result.stderr);
}

function isAbsent({ exitCode, stderr }: ExecResult): boolean {
  return exitCode === notThere && !stderr.includes('ermission denied');
}

/** Replaces a file in one step; creates the folders above it. */
export async function writeRemoteFile(machine: SessionMachine, path: string, content: string, mode: number): Promise<void> {
  if (!path.startsWith('/')) throw new SvcError('SVC_INTERNAL', `A path on a machine must be absolute: ${path}`);
  const input = Buffer.from(content, 'utf8');
  const temporary = `${path}.${randomHex(12)}.new`;
  const argv = ['sh', '-c', writeScript, 'sh', path, temporary, mode.toString(8), String(input.length)];
  const { exitCode, stderr } = await runCaptured(machine, { argv, env: plainWords, input, isRepeatable: true });
  if (exitCode !== 0) throw workError(machine, `The file ${path} could not be written`, stderr);
}

/**
 * Prints something whenever the file appears, grows, or is replaced or removed. `tail` waits for events of the file
 * system; where there are none it polls itself, so no process starts meanwhile. Only a machine whose tail cannot follow
 * a name reaches the loop. It sees times with fractions where `ls` shows them.
 */
const script = `tail -s 0.2 -n +1 -F -- "$1" 2>&1
tail -n +1 -F -- "$1" 2>&1
for svc_ls in '-lAinq --time-style=full-iso' '-lAin --full-time' -lAin; do ls $svc_ls / > /dev/null 2>&1 && break; done
look() { ls $svc_ls -- "$1" 2> /dev/null; }
seen=$(look "$1")
echo
while sleep 0.2 2> /dev/null || sleep 1; do
  now=$(look "$1")
  [ "$now" = "$seen" ] || { seen=$now; echo; }
done`;

const pauseMs = 1_000;

/** Notices nothing during a broken connection, but calls `onChange` after it: something may have changed. */
export async function watchRemoteFile(
  machine: () => Promise<SessionMachine>,
  path: string,
  onChange: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const request = {
    argv: ['sh', '-c', script, 'sh', path],
    env: {},
    input: Buffer.alloc(0),
    onStdout: () => onChange(),
    onStderr: () => undefined,
    signal,
  };
  while (!signal.aborted) {
    try {
      await (await machine()).session(request, { lane: 'stream', isRepeatable: false });
    } catch {
      // The caller polls at once and gets the error from the poll. This loop only retries.
      onChange();
    }
    await clock.sleep(pauseMs, signal);
  }
}
