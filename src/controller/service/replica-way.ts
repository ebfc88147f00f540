import type { Remote } from '../../remote/remote.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { ReplicaHandle } from './replica-handle.ts';

/** How requests get to a replica. */
export interface Way {
  readonly address: ReplicaAddress;
  /** Looks for the best way, once the program listens: before that nobody can tell whether its port is open to us. Keeps what it has when it cannot. */
  settle(signal: AbortSignal): Promise<void>;
}

/** Begins with the recorded address; a better one is recorded. */
export function openWay(handle: Pick<ReplicaHandle, 'note'>, recorded: ReplicaAddress, remote: Pick<Remote, 'address'>, port: number): Way {
  let address = recorded;
  return {
    get address() {
      return address;
    },
    async settle(signal) {
      if (address.kind !== 'forward') return;
      const best = await remote.address(port, { signal }).catch(() => address);
      if (best.kind !== 'tcp') return;
      address = best;
      const message = `Its port is open: requests go directly to ${best.host}:${best.port}.`;
      await handle.note({ address }, { cause: 'address', message });
    },
  };
}
