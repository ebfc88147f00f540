import type { PodProcess } from '../../kubernetes/kube-api.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { randomHex } from '../../shared/hex.ts';
import { unlessAborted } from '../../shared/deadline.ts';
import { Semaphore } from '../session/semaphore.ts';
import type { SessionEnd, SessionRequest } from '../session/session-machine.ts';
import { lastOutputMs, SessionOutputs } from '../session/session-outputs.ts';
import { sessionScript } from '../session/session-script.ts';

/** Per process and pod. Several, so that reading a large file does not delay small ones. */
const shellsAtOnce = 3;

/** A shell ends after this idle time, ms. Processes that poll a pod use it more often. */
const idleMs = 90_000;

/** The shells kept in one pod. */
export class KeptShells {
  readonly #open: (signal?: AbortSignal) => Promise<KeptShell>;
  readonly #clock: Clock;
  readonly #slots = new Semaphore(shellsAtOnce);
  readonly #idle: { readonly shell: KeptShell; readonly cancelEnd: CancelTimer }[] = [];

  #isClosed = false;

  constructor(open: (signal?: AbortSignal) => Promise<KeptShell>, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /** Repeats the request in a new shell when the kept one has ended. */
  async run(request: TextRequest): Promise<SessionEnd> {
    const { signal } = request;
    return this.#slots.run(async () => {
      signal?.throwIfAborted();
      const kept = this.#takeIdle();
      if (kept !== undefined) {
        const end = await this.#use(kept, request);
        if (end.how !== 'lost') return end;
      }
      return this.#use(await this.#open(signal), request);
    }, signal);
  }

  /** Ends idle shells now, and busy ones after their scripts. */
  close(): void {
    this.#isClosed = true;
    for (const { shell, cancelEnd } of this.#idle.splice(0)) {
      cancelEnd();
      shell.close();
    }
  }

  #takeIdle(): KeptShell | undefined {
    for (;;) {
      const last = this.#idle.pop();
      last?.cancelEnd();
      if (last === undefined || !last.shell.isOver) return last?.shell;
    }
  }

  async #use(shell: KeptShell, request: TextRequest): Promise<SessionEnd> {
    let isAbandoned = false;
    const ended = shell.run({
      ...request,
      onStdout: (bytes) => !isAbandoned && request.onStdout(bytes),
      onStderr: (bytes) => !isAbandoned && request.onStderr(bytes),
    });
    try {
      return await unlessAborted(ended, request.signal);
    } catch (error) {
      // The short and harmless script may run to its end.
      isAbandoned = true;
      throw error;
    } finally {
      void ended.then(() => this.#keep(shell));
    }
  }

  #keep(shell: KeptShell): void {
    if (shell.isOver) return;
    if (this.#isClosed) return shell.close();
    const entry = { shell, cancelEnd: this.#clock.after(idleMs, () => this.#end(shell)) };
    this.#idle.push(entry);
  }

  #end(shell: KeptShell): void {
    const at = this.#idle.findIndex((one) => one.shell === shell);
    if (at >= 0) this.#idle.splice(at, 1);
    shell.close();
  }
}

/** From sending a script to its end. Scripts read and write small files. */
const scriptTimeoutMs = 25_000;

/** Longest input within a script: shells read scripts byte by byte. */
const longestText = 32_768;

/** A request for a shared shell: it leaves nothing behind, and its input is short text. */
export interface TextRequest extends Omit<SessionRequest, 'input'> {
  readonly text: string;
}

/** Undefined when a kept shell cannot run the request. */
export function textRequest(request: SessionRequest): TextRequest | undefined {
  const { input } = request;
  if (!Buffer.isBuffer(input) || input.length > longestText || input.includes(0)) return undefined;
  const text = input.toString('utf8');
  return Buffer.from(text, 'utf8').equals(input) ? { ...request, text } : undefined;
}

interface Running {
  readonly outputs: SessionOutputs;
  readonly settle: (end: SessionEnd) => void;
}

/** A shell in a pod for one script after another: reading a file then costs no request to the API server. */
export class KeptShell {
  readonly #command: PodProcess;
  readonly #clock: Clock;
  #running: Running | undefined;
  #isOver = false;
  #cancelTimeout: CancelTimer = () => undefined;
  #cancelLast: CancelTimer | undefined;

  /** `command` is `repeatingBootCommand`. */
  constructor(command: PodProcess, clock: Clock) {
    this.#command = command;
    this.#clock = clock;
    command.holdProcess(false);
    command.stdio.on('data', (chunk: Buffer) => this.#take('stdout', chunk));
    command.stderr.on('data', (chunk: Buffer) => this.#take('stderr', chunk));
    command.stdio.on('error', () => this.close());
    void command.ended.then(({ message }) => this.#over('lost', message));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

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

  close(): void {
    this.#over('lost');
  }

  #take(output: 'stdout' | 'stderr', chunk: Buffer): void {
    const outputs = this.#running?.outputs;
    if (outputs === undefined) return;
    outputs[output].push(chunk);
    const { ends } = outputs;
    if (ends === 2) this.#settle('ended');
    // The missing output may come late and would appear in the next script's output, so the shell ends.
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
    // An idle shell must not keep a CLI command alive.
    this.#command.holdProcess(false);
    running?.settle(running.outputs.end(how, said));
  }
}
