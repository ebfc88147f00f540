import type { Clock } from '../../shared/clock.ts';
import type { MachineId, MachineStatus } from '../provider.ts';
import type { MachineSight } from './cluster.ts';

/** How long machines wait for room that an autoscaler may make: when that takes too long, they count as gone. */
export class Patience {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #waitingSince = new Map<MachineId, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** A status, or that the wait is over. Counted from when this process first saw it wait. */
  judge(id: MachineId, { status, isWaitingForRoom, patienceSeconds }: Omit<MachineSight, 'isThere'>): MachineStatus {
    if (status.state !== 'booting' || !isWaitingForRoom || patienceSeconds === undefined) {
      this.#waitingSince.delete(id);
      return status;
    }
    const now = this.#clock.monotonic();
    const since = this.#waitingSince.get(id) ?? now;
    this.#waitingSince.set(id, since);
    if (now - since < patienceSeconds * 1_000) return { ...status, isQueued: true };
    return {
      state: 'gone',
      reason: 'unknown',
      mayPass: true,
      message: `No node within ${patienceSeconds} s: ${status.message ?? 'its cluster does not say why.'}`,
    };
  }

  forget(id: MachineId): void {
    this.#waitingSince.delete(id);
  }
}
