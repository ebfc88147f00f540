import type { PodProcess } from '../../kubernetes/kube-api.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { SessionEnd, SessionRequest } from '../session/session-machine.ts';
import { lastOutputMs, SessionOutputs } from '../session/session-outputs.ts';
import { sessionScript } from '../session/session-script.ts';

/** From a script's sending to its end: what runs here reads and writes small files. */
const scriptTimeoutMs = 25_000;

/** Longest input that is part of a script. Shells read scripts byte by byte. */
const longestText = 32_768;

/** A request that one shell may run after others: it leaves nothing behind, and its input is short text. */
export interface TextRequest extends Omit<SessionRequest, 'input'> {
  readonly text: string;
}

/** The request as a shell that is kept can run it; undefined when it cannot. */
export function textRequest(request: SessionRequest): TextRequest | undefined {
  const { input } = request;
  if (!Buffer.isBuffer(input) || input.length > longestText || input.includes(0)) return undefined;
  const text = input.toString('utf8');
  return Buffer.from(text, 'utf8').equals(input) ? { ...request, text } : undefined;
}

/** The script that a shell runs. */
interface Running {
  readonly outputs: SessionOutputs;
  readonly settle: (end: SessionEnd) => void;
}

/** One shell in a pod, which runs one script after another: a look at a file then costs no request to the API server. */
export class KeptShell {
  readonly #command: PodProcess;
  readonly #clock: Clock;
  #running: Running | undefined;
  #isOver = false;
  #cancelTimeout: CancelTimer = () => undefined;
  #cancelLast: CancelTimer | undefined;

  /** The command is `repeatingBootCommand`. */
  constructor(command: PodProcess, clock: Clock) {
    this.#command = command;
    this.#clock = clock;
    command.holdProcess(false);
    command.stdio.on('data', (chunk: Buffer) => this.#take('stdout', chunk));
    command.stderr.on('data', (chunk: Buffer) => this.#take('stderr', chunk));
    command.stdio.on('error', () => this.close());
    void command.ended.then(({ message }) => this.#over('lost', message));
  }

  /** Whether it can run no more scripts. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Runs one script; only while the shell is neither busy nor over. */
  run(request: TextRequest): Promise<SessionEnd> {
    const token = `svc-${randomHex(24)}`;
    const script = sessionScript({ ...request, input: { kind: 'text', text: request.text } }, token);
    request.onStart?.();
    const { promise, resolve } = Promise.withResolvers<SessionEnd>();
    const outputs = new SessionOutputs(token, request);
    this.#running = { outputs, settle: resolve };
    this.#command.holdProcess(true);
    this.#cancelTimeout = this.#clock.after(request.timeoutMs ?? scriptTimeoutMs, () =>
      this.#over(outputs.stdout.isStarted && request.timeoutMs !== undefined ? 'timed-out' : 'silent'),
    );
    this.#command.stdio.write(script);
    return promise;
  }

  /** Ends the shell; what runs is lost. */
  close(): void {
    this.#over('lost');
  }

  #take(output: 'stdout' | 'stderr', chunk: Buffer): void {
    const outputs = this.#running?.outputs;
    if (outputs === undefined) return;
    outputs[output].push(chunk);
    const { ends } = outputs;
    if (ends === 2) this.#settle('ended');
    // The other output would show up in the next one's.
    else if (ends === 1) this.#cancelLast ??= this.#clock.after(lastOutputMs, () => this.#over('lost'));
  }

  #over(how: SessionEnd['how'], said?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#settle(how, said);
    this.#command.close();
  }

  #settle(how: SessionEnd['how'], said = ''): void {
    this.#cancelTimeout();
    this.#cancelLast?.();
    this.#cancelLast = undefined;
    const running = this.#running;
    this.#running = undefined;
    // One that is kept for a next script must not keep a command of the user from ending.
    this.#command.holdProcess(false);
    running?.settle(running.outputs.end(how, said));
  }
}
