import type { MachineId } from '../provider.ts';

/** Whether a login to a machine works. Never throws for a machine that is not ready. */
export type ReadinessCheck = (id: MachineId) => Promise<boolean>;

/** Remembers machines that have answered: about ten seconds after the cloud reports them as running. */
export class Readiness {
  readonly #check: ReadinessCheck;
  readonly #ready = new Set<MachineId>();
  readonly #asking = new Map<MachineId, Promise<void>>();

  constructor(check: ReadinessCheck) {
    this.#check = check;
  }

  /** Starts a check in the background, if the machine has not answered; a later call returns the result. */
  isReady(id: MachineId): boolean {
    if (this.#ready.has(id)) return true;
    if (!this.#asking.has(id)) this.#asking.set(id, this.#ask(id));
    return false;
  }

  /** The machine must answer again, as after a stop. Pending checks no longer count. */
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
      // The next call starts a new check.
      return false;
    }
  }
}
