import type { Readable, Writable } from 'node:stream';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { randomHex } from '../../shared/hex.ts';
import type { SessionEnd, SessionRequest } from './session-machine.ts';
import { lastOutputMs, SessionOutputs } from './session-outputs.ts';
import { sessionScript, type SessionCommand } from './session-script.ts';
import { abortReason } from '../../shared/deadline.ts';

/** Runs `bootCommand` on the machine: an ssh process, or a command in a container. */
export interface SessionCarrier {
  readonly stdin: Writable;
  readonly stdout: NodeJS.ReadableStream;
  readonly stderr: NodeJS.ReadableStream;
  /** Settles after the last output, with a message about the end. Rejects when the carrier could not be started. */
  readonly closed: Promise<string>;
  kill(): void;
}

/** From the request to the command's start, ms. Longer than ssh needs to notice that a machine is gone. */
const startTimeoutMs = 25_000;

/** Rejects only when cancelled, when the carrier could not be started, or when the input could not be read. */
export async function runSession(
  open: () => SessionCarrier | Promise<SessionCarrier>,
  request: SessionRequest,
  clock: Clock,
): Promise<SessionEnd> {
  request.signal?.throwIfAborted();
  const token = `svc-${randomHex(24)}`;
  const script = sessionScript({ ...request, input: inputKind(request.input) }, token);
  request.onStart?.();
  return new Conversation(await open(), { ...request, script, token }, clock).run();
}

interface ScriptedRequest extends SessionRequest {
  readonly script: string;
  readonly token: string;
}

/** One session, from the script to the carrier's end. */
class Conversation {
  readonly #carrier: SessionCarrier;
  readonly #request: ScriptedRequest;
  readonly #clock: Clock;
  readonly #outputs: SessionOutputs;
  #how: SessionEnd['how'] = 'lost';
  #cancelTimeout: CancelTimer;
  #cancelLast: CancelTimer | undefined;
  #sourceError: Error | undefined;

  constructor(carrier: SessionCarrier, request: ScriptedRequest, clock: Clock) {
    this.#carrier = carrier;
    this.#request = request;
    this.#clock = clock;
    this.#outputs = new SessionOutputs(request.token, request);
    this.#cancelTimeout = clock.after(startTimeoutMs, () => this.#cut('silent'));
  }

  async run(): Promise<SessionEnd> {
    const { signal } = this.#request;
    const carrier = this.#carrier;
    carrier.stdout.on('data', (chunk: Buffer) => this.#take('stdout', chunk));
    carrier.stderr.on('data', (chunk: Buffer) => this.#take('stderr', chunk));
    const abort = (): void => this.#cut('lost');
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted === true) abort();
    const source = this.#feed();
    try {
      const said = await carrier.closed;
      if (signal?.aborted === true) throw abortReason(signal);
      if (this.#sourceError !== undefined) throw this.#sourceError;
      return this.#outputs.end(this.#how, said);
    } finally {
      this.#cancelTimeout();
      this.#cancelLast?.();
      signal?.removeEventListener('abort', abort);
      source?.unpipe(carrier.stdin);
    }
  }

  #cut(how: SessionEnd['how']): void {
    this.#how = how;
    this.#carrier.kill();
  }

  #take(name: 'stdout' | 'stderr', chunk: Buffer): void {
    const { timeoutMs } = this.#request;
    const output = this.#outputs[name];
    const wasStarted = output.isStarted;
    output.push(chunk);
    if (name === 'stdout' && !wasStarted && output.isStarted) {
      this.#cancelTimeout();
      if (timeoutMs !== undefined) this.#cancelTimeout = this.#clock.after(timeoutMs, () => this.#cut('timed-out'));
    }
    const { ends } = this.#outputs;
    if (ends === 2) this.#cut('ended');
    // Output may still be in transit on the other stream.
    else if (ends === 1) this.#cancelLast ??= this.#clock.after(lastOutputMs, () => this.#cut('ended'));
  }

  #feed(): Readable | undefined {
    const { input, script } = this.#request;
    const { stdin } = this.#carrier;
    // A command may end without reading its input.
    stdin.on('error', () => undefined);
    stdin.write(script);
    // Not ended: the end of the input tells the machine that the caller no longer waits.
    if (Buffer.isBuffer(input)) stdin.write(input);
    const { source, bytes } = sourceOf(input);
    source?.once('error', (error) => {
      this.#sourceError = error;
      this.#cut('lost');
    });
    source?.pipe(stdin, { end: bytes === undefined });
    if (source !== undefined && bytes !== undefined) this.#cutIfShort(source, bytes);
    return source;
  }

  /** The machine would wait for the missing bytes forever. */
  #cutIfShort(source: Readable, bytes: number): void {
    let missing = bytes;
    source.on('data', (chunk: Buffer) => (missing -= chunk.length));
    source.once('end', () => {
      if (missing > 0) this.#cut('lost');
    });
  }
}

function inputKind(input: SessionRequest['input']): SessionCommand['input'] {
  if (input === 'detached') return { kind: 'detached' };
  if (Buffer.isBuffer(input)) return { kind: 'bytes', bytes: input.length };
  return 'bytes' in input ? { kind: 'bytes', bytes: input.bytes } : { kind: 'stream' };
}

function sourceOf(input: SessionRequest['input']): { readonly source: Readable | undefined; readonly bytes?: number } {
  if (input === 'detached' || Buffer.isBuffer(input)) return { source: undefined };
  return 'bytes' in input ? { source: input.stream, bytes: input.bytes } : { source: input };
}
