import type { ControllerRole } from './leadership/health-server.ts';

/** How far a daemon is in its life: what it is at the moment, and whether it is to end. */
export class DaemonLife {
  readonly #stop = new AbortController();
  #role: ControllerRole;
  #isToldToStop = false;

  constructor(role: ControllerRole) {
    this.#role = role;
  }

  get role(): ControllerRole {
    return this.#role;
  }

  /** Aborts when it is to end. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether somebody told it to end; else it ends because nothing needs it. */
  get isToldToStop(): boolean {
    return this.#isToldToStop;
  }

  /** It answers commands from now on, unless it is to end by now. */
  leads(): void {
    if (!this.#stop.signal.aborted) this.#role = 'leader';
  }

  /** Nothing needs it any more. */
  end(): void {
    this.#stop.abort();
  }

  readonly stopAsTold = (): void => {
    this.#isToldToStop = true;
    this.#role = 'stopping';
    this.#stop.abort();
  };
}
