import type { PodProcess } from '../../kubernetes/kube-api.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { SessionEnd, SessionRequest } from '../session/session-machine.ts';
import { lastOutputMs, SessionOutputs } from '../session/session-outputs.ts';
import { sessionScript } from '../session/session-script.ts';

/** From sending a script to its end. Scripts read and write small files. */
const scriptTimeoutMs = 25_000;

/** Longest input that is sent within a script. Shells read scripts byte by byte. */
const longestText = 32_768;

/** A request that a shared shell may run: it leaves nothing behind, and its input is short text. */
export interface TextRequest extends Omit<SessionRequest, 'input'> {
  readonly text: string;
}

/** The request in the form for a kept shell; undefined when such a shell cannot run it. */
export function textRequest(request: SessionRequest): TextRequest | undefined {
  const { input } = request;
  if (!Buffer.isBuffer(input) || input.length > longestText || input.includes(0)) return undefined;
  const text = input.toString('utf8');
  return Buffer.from(text, 'utf8').equals(input) ? { ...request, text } : undefined;
}

/** The script in progress. */
interface Running {
  readonly outputs: SessionOutputs;
  readonly settle: (end: SessionEnd) => void;
}

/** One shell in a pod that runs one script after another: reading a file then costs no request to the API server. */
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

  /** Whether the shell can run no more scripts. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Runs one script. The caller must check that the shell is neither busy nor over. */
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

  /** Ends the shell; a running script is lost. */
  close(): void {
    this.#over('lost');
  }

  #take(output: 'stdout' | 'stderr', chunk: Buffer): void {
    const outputs = this.#running?.outputs;
    if (outputs === undefined) return;
    outputs[output].push(chunk);
    const { ends } = outputs;
    if (ends === 2) this.#settle('ended');
    // One output's end is missing. Its late bytes would appear in the next script's output, so the shell ends.
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
    // An idle shell must not keep a CLI command from ending.
    this.#command.holdProcess(false);
    running?.settle(running.outputs.end(how, said));
  }
}
