import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Clock } from '../../shared/clock.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { MarkedOutput } from './marked-output.ts';
import { bootCommand, sessionScript, type SessionCommand } from './session-script.ts';
import { noSsh } from './ssh-process.ts';
import { clientOptions } from './ssh-master.ts';
import { sshEnvironment } from './ssh-target.ts';

/** What is to happen in one session. */
export interface SessionRequest extends Omit<SessionCommand, 'input'> {
  /** Bytes for the command's input, a stream of them, or nothing as it is to go on by itself. */
  readonly input: Buffer | Readable | 'detached';
  readonly onStdout: (bytes: Buffer) => void;
  readonly onStderr: (bytes: Buffer) => void;
  /** Before the first byte, each time when the request has to be repeated. */
  readonly onStart?: () => void;
  /** The command is ended after so many ms. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * How a session ended. Without `exitCode` the command's end was not heard of: it was cut off (`timed-out`, `silent` when it had not even begun) or
 * the connection went (`lost`).
 */
export interface SessionEnd {
  readonly exitCode: number | undefined;
  readonly how: 'ended' | 'timed-out' | 'silent' | 'lost';
  readonly isStarted: boolean;
  /** What ssh, or the user's shell, said besides. */
  readonly said: string;
}

/** From the request to the command's start; longer than ssh needs to notice that a machine is gone. */
const startTimeoutMs = 25_000;

/** After the end was told on one output, for what is still under way on the other, which something left behind may be holding. */
const lastOutputMs = 2_000;

/** Runs a command in a session of its own over the connection held at `control`. Rejects only when cancelled. */
export function runSession(control: string, request: SessionRequest, clock: Clock): Promise<SessionEnd> {
  const { input, signal, timeoutMs } = request;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const token = `svc-${randomHex(24)}`;
    const kind = Buffer.isBuffer(input)
      ? { kind: 'bytes' as const, bytes: input.length }
      : { kind: input === 'detached' ? input : ('stream' as const) };
    request.onStart?.();
    const script = sessionScript({ ...request, input: kind }, token);
    const child = spawn('ssh', [...clientOptions(control), '-T', 'machine', bootCommand], { env: sshEnvironment(false), stdio: 'pipe' });
    const stdout = new MarkedOutput(token, request.onStdout);
    const stderr = new MarkedOutput(token, request.onStderr);
    let how: SessionEnd['how'] = 'lost';
    const end = (reason: SessionEnd['how']): void => {
      how = reason;
      child.kill('SIGKILL');
    };
    let cancelTimeout = clock.after(startTimeoutMs, () => end('silent'));
    let cancelLast: (() => void) | undefined;
    const take = (output: MarkedOutput, chunk: Buffer): void => {
      const wasStarted = output.isStarted;
      output.push(chunk);
      if (!wasStarted && output.isStarted && output === stdout) {
        cancelTimeout();
        if (timeoutMs !== undefined) cancelTimeout = clock.after(timeoutMs, () => end('timed-out'));
      }
      if (stdout.exitCode !== undefined && stderr.exitCode !== undefined) end('ended');
      else if (output.exitCode !== undefined) cancelLast ??= clock.after(lastOutputMs, () => end('ended'));
    };
    child.stdout.on('data', (chunk: Buffer) => take(stdout, chunk));
    child.stderr.on('data', (chunk: Buffer) => take(stderr, chunk));
    const abort = (): void => end('lost');
    signal?.addEventListener('abort', abort, { once: true });
    const settle = (finish: () => void): void => {
      cancelTimeout();
      cancelLast?.();
      signal?.removeEventListener('abort', abort);
      if (!Buffer.isBuffer(input) && input !== 'detached') input.unpipe(child.stdin);
      finish();
    };
    child.once('error', (error) => settle(() => reject(noSsh(error))));
    child.once('close', () => {
      settle(() => {
        if (signal?.aborted === true) return reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
        const exitCode = stdout.exitCode ?? stderr.exitCode;
        const isStarted = stdout.isStarted || stderr.isStarted;
        return resolve({ exitCode, how: exitCode === undefined ? how : 'ended', isStarted, said: stderr.foreign });
      });
    });
    // A command may end without reading its input.
    child.stdin.on('error', () => undefined);
    child.stdin.write(script);
    if (input === 'detached') return;
    // Left open: the end of the input is how the machine learns that nobody waits any more.
    if (Buffer.isBuffer(input)) child.stdin.write(input);
    else input.pipe(child.stdin);
  });
}
