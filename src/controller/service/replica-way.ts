import type { Remote } from '../../remote/remote.ts';
import type { Clock } from '../../shared/clock.ts';
import { describeAddress, type ReplicaAddress } from '../../shared/replica-address.ts';
import type { ReplicaHandle } from './replica-handle.ts';

/** How requests get to a replica. */
export interface Way {
  readonly address: ReplicaAddress;
  /** Looks for the best way, once the program listens: before that nobody can tell whether its port is open to us. Keeps what it has when it cannot. */
  settle(signal: AbortSignal): Promise<void>;
  /** Where a place has several ways, looks for one that leads there, as the present one may not any more. Keeps what it has when there is none. */
  repair(clock: Clock, signal: AbortSignal): Promise<void>;
}

/** Looking for a way must not keep the next probe waiting, ms. */
const repairLimitMs = 5_000;

/** Begins with the recorded address; a better one is recorded. */
export function openWay(handle: Pick<ReplicaHandle, 'note'>, recorded: ReplicaAddress, remote: Pick<Remote, 'address'>, port: number): Way {
  let address = recorded;
  const take = async (best: ReplicaAddress, why: string): Promise<void> => {
    if (describeAddress(best) === describeAddress(address)) return;
    address = best;
    await handle.note({ address }, { cause: 'address', message: `${why}: ${describeAddress(best)}.` });
  };
  return {
    get address() {
      return address;
    },
    async settle(signal) {
      if (address.kind !== 'forward') return;
      const best = await remote.address(port, { signal }).catch(() => address);
      if (best.kind === 'tcp') await take(best, 'Its port is open, so requests go there directly');
    },
    async repair(clock, signal) {
      if (address.by === undefined) return;
      const tooLong = new AbortController();
      const cancel = clock.after(repairLimitMs, () => tooLong.abort());
      const best = await remote.address(port, { signal: AbortSignal.any([signal, tooLong.signal]) }).catch(() => address);
      cancel();
      if (!signal.aborted) await take(best, 'Requests go there another way now');
    },
  };
}
