import type { MachineId } from '../provider.ts';

/** Whether a login to a machine works; returns false, and never throws, for a machine that is not ready. */
export type ReadinessCheck = (id: MachineId) => Promise<boolean>;

/**
 * Remembers which machines have answered. A login works about ten seconds after the cloud reports a machine as running.
 */
export class Readiness {
  readonly #check: ReadinessCheck;
  readonly #ready = new Set<MachineId>();
  readonly #asking = new Map<MachineId, Promise<void>>();

  constructor(check: ReadinessCheck) {
    this.#check = check;
  }

  /** Whether the machine has answered. If not, a check runs in the background, and a later call returns its result. */
  isReady(id: MachineId): boolean {
    if (this.#ready.has(id)) return true;
    if (!this.#asking.has(id)) this.#asking.set(id, this.#ask(id));
    return false;
  }

  /** The machine has to answer again, as after a stop; earlier and pending checks no longer count. */
  forget(id: MachineId): void {
    this.#ready.delete(id);
    this.#asking.delete(id);
  }

  /** Settles when no check is running. */
  async settled(): Promise<void> {
    await Promise.all(this.#asking.values());
  }

  #ask(id: MachineId): Promise<void> {
    const asking: Promise<void> = this.#probe(id, () => this.#asking.get(id) === asking);
    return asking;
  }

  async #probe(id: MachineId, counts: () => boolean): Promise<void> {
    const hasAnswered = await this.#answers(id);
    if (!counts()) return;
    this.#asking.delete(id);
    if (hasAnswered) this.#ready.add(id);
  }

  async #answers(id: MachineId): Promise<boolean> {
    try {
      return await this.#check(id);
    } catch {
      // The result has no waiting caller; the next call starts a new check.
      return false;
    }
  }
}
