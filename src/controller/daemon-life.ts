import type { ControllerRole } from './leadership/health-server.ts';

/** Lifecycle of a daemon: its current role, and whether it must end. */
export class DaemonLife {
  readonly #stop = new AbortController();
  #role: ControllerRole;
  #isStopRequested = false;

  constructor(role: ControllerRole) {
    this.#role = role;
  }

  get role(): ControllerRole {
    return this.#role;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether the daemon received a stop command or signal. Otherwise it ends because it is idle. */
  get isStopRequested(): boolean {
    return this.#isStopRequested;
  }

  /** The daemon answers commands from now on, unless it is already ending. */
  leads(): void {
    if (!this.#stop.signal.aborted) this.#role = 'leader';
  }

  /** Ends the daemon because it is idle. */
  end(): void {
    this.#stop.abort();
  }

  readonly requestStop = (): void => {
    this.#isStopRequested = true;
    this.#role = 'stopping';
    this.#stop.abort();
  };
}
