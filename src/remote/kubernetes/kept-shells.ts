import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { Semaphore } from '../session/semaphore.ts';
import type { SessionEnd } from '../session/session-machine.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import type { KeptShell, TextRequest } from './kept-shell.ts';

/** Shells of this process in one pod. Several, so that reading a large file does not delay small ones. */
const shellsAtOnce = 3;

/** A shell that was idle for that long is ended, ms. Processes that poll a pod use it more often. */
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

  /** Runs a request. When the kept shell has ended, runs it once more in a new one. */
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

  /** Ends idle shells now, and each busy one after its script. */
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
      // The script is short and harmless: it may run to its end.
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
