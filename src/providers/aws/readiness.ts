import type { MachineId } from '../provider.ts';

/** Whether a machine can be worked on; never throws for one that cannot yet. */
export type ReadinessCheck = (id: MachineId) => Promise<boolean>;

/** Remembers which machines have answered. A machine that runs for AWS takes some ten seconds more until one can log in. */
export class Readiness {
  readonly #check: ReadinessCheck;
  readonly #ready = new Set<MachineId>();
  readonly #asking = new Map<MachineId, Promise<void>>();

  constructor(check: ReadinessCheck) {
    this.#check = check;
  }

  /** Whether it has answered; when it has not, it is asked in the background, and a later call tells. */
  isReady(id: MachineId): boolean {
    if (this.#ready.has(id)) return true;
    if (!this.#asking.has(id)) this.#asking.set(id, this.#ask(id));
    return false;
  }

  /** It has to answer again, as after a stop: what it was asked before counts no more. */
  forget(id: MachineId): void {
    this.#ready.delete(id);
    this.#asking.delete(id);
  }

  /** Settles when nothing is being asked. */
  async settled(): Promise<void> {
    await Promise.all(this.#asking.values());
  }

  #ask(id: MachineId): Promise<void> {
    const asking: Promise<void> = this.#hear(id, () => this.#asking.get(id) === asking);
    return asking;
  }

  async #hear(id: MachineId, counts: () => boolean): Promise<void> {
    const hasAnswered = await this.#answers(id);
    if (!counts()) return;
    this.#asking.delete(id);
    if (hasAnswered) this.#ready.add(id);
  }

  async #answers(id: MachineId): Promise<boolean> {
    try {
      return await this.#check(id);
    } catch {
      // Nobody waits for this one; the next look asks again.
      return false;
    }
  }
}
