import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { Semaphore } from '../session/semaphore.ts';
import type { SessionEnd } from '../session/session-machine.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import type { KeptShell, TextRequest } from './kept-shell.ts';

/** Shells of this process in one pod: a large file that is read holds up no small one. */
const shellsAtOnce = 3;

/** A shell that nobody used for so long is ended, ms; whoever polls a pod does so more often. */
const idleMs = 90_000;

/** The shells that are kept in one pod. */
export class KeptShells {
  readonly #open: (signal?: AbortSignal) => Promise<KeptShell>;
  readonly #clock: Clock;
  readonly #places = new Semaphore(shellsAtOnce);
  readonly #idle: { readonly shell: KeptShell; readonly cancelEnd: CancelTimer }[] = [];

  #isClosed = false;

  constructor(open: (signal?: AbortSignal) => Promise<KeptShell>, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /** Runs a request, once or, when the shell that was kept has gone, once more in a new one. */
  async run(request: TextRequest): Promise<SessionEnd> {
    const { signal } = request;
    return this.#places.run(async () => {
      signal?.throwIfAborted();
      const kept = this.#takeIdle();
      if (kept !== undefined) {
        const end = await this.#use(kept, request);
        if (end.how !== 'lost') return end;
      }
      return this.#use(await this.#open(signal), request);
    }, signal);
  }

  /** Ends those that are idle, and each of the others after what it runs. */
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
    let isGivenUp = false;
    const ended = shell.run({
      ...request,
      onStdout: (bytes) => !isGivenUp && request.onStdout(bytes),
      onStderr: (bytes) => !isGivenUp && request.onStderr(bytes),
    });
    try {
      return await unlessAborted(ended, request.signal);
    } catch (error) {
      // It is short and does no harm: it may go on to its end.
      isGivenUp = true;
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
