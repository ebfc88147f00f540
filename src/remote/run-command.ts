import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Clock } from '../shared/clock.ts';
import { hasErrno, messageOf } from '../shared/errors.ts';
import type { ExecOptions, ExecResult } from './remote.ts';

/** `env` is the whole environment. */
interface CommandOptions extends Omit<ExecOptions, 'env'> {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

const maxOutputBytes = 1_048_576;

/** The exit code of timeout(1). */
const timedOutExitCode = 124;

/** Background processes may hold a command's outputs open. After its end, they are read for this long, ms. */
const lastOutputMs = 100;

/** A shell's exit code for a command that cannot be run; the next one says that it does not exist. */
export const notRunnable = 126;
const notFound = 127;

/** Runs a local command in its own session, so that an abort also ends its children. Throws only when cancelled. */
export function runCommand(argv: readonly string[], options: CommandOptions): Promise<ExecResult> {
  const [file = '', ...args] = argv;
  options.signal?.throwIfAborted();
  return options.detached === true ? startDetached(file, args, options) : runToEnd(file, args, options);
}

function startDetached(file: string, args: readonly string[], { env, cwd }: CommandOptions): Promise<ExecResult> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { env, cwd, detached: true, stdio: 'ignore' });
    child.once('error', (error) => resolve(failedToStart(file, error)));
    child.once('spawn', () => resolve({ exitCode: 0, stdout: '', stderr: '' }));
    child.unref();
  });
}

function runToEnd(file: string, args: readonly string[], options: CommandOptions): Promise<ExecResult> {
  const { env, cwd, input, timeoutMs, signal, clock } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env, cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    let timedOut = false;
    const killAll = (): void => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        // The command has ended, and no process of its group remains.
        if (!hasErrno(error, 'ESRCH', 'EPERM')) throw error;
      }
    };
    const cancelTimeout = timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => ((timedOut = true), killAll()));
    signal?.addEventListener('abort', killAll, { once: true });
    const settle = (result: ExecResult): void => {
      cancelTimeout?.();
      signal?.removeEventListener('abort', killAll);
      child.stdout.destroy();
      child.stderr.destroy();
      if (signal?.aborted === true) reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
      else resolve(result);
    };
    child.once('error', (error) => settle(failedToStart(file, error)));
    child.once('exit', (code, signalName) => {
      const ended = signalName === null ? (code ?? notRunnable) : 128 + constants.signals[signalName];
      const finish = (): void => settle({ exitCode: timedOut ? timedOutExitCode : ended, stdout: stdout.text(), stderr: stderr.text() });
      // With a delayed event loop, the timer may expire before arrived data is read. `setImmediate` reads once more.
      const cancelWait = clock.after(lastOutputMs, () => setImmediate(finish));
      child.once('close', () => (cancelWait(), finish()));
    });
    // A command may end without reading its input.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
  });
}

function failedToStart(file: string, error: Error): ExecResult {
  // For a name without a slash, Node reports EACCES when a single folder of PATH is not accessible. A shell reports
  // such a command as missing.
  const isMissing = hasErrno(error, 'ENOENT') || (!file.includes('/') && hasErrno(error, 'EACCES'));
  return { exitCode: isMissing ? notFound : notRunnable, stdout: '', stderr: messageOf(error) };
}

function collect(stream: NodeJS.ReadableStream): { text(): string } {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    if (bytes >= maxOutputBytes) return;
    chunks.push(chunk.subarray(0, maxOutputBytes - bytes));
    bytes += chunk.length;
  });
  stream.on('error', () => undefined);
  return { text: () => Buffer.concat(chunks).toString('utf8') };
}
