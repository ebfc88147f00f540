import type { ReplicaRecord } from './records.ts';
import { isEnded } from './replica/replica-state.ts';

/** What a service may still launch within its price limit. */
interface Budget {
  /** Whether one more replica is within the limit; it then counts. */
  readonly allows: () => boolean;
  /** How many were refused. */
  readonly refused: number;
}

/**
 * A launch is priced like the newest replica with a machine, as is each replica that waits for one. While no price is
 * known, one replica at a time is launched. Replicas that terminate still cost.
 */
export function budgetOf(limitUsd: number | undefined, replicas: readonly ReplicaRecord[]): Budget {
  const usual = replicas.findLast(({ offer }) => offer !== null)?.offer?.hourlyUsd;
  const paid = replicas.filter(({ state }) => !isEnded(state));
  let waiting = paid.filter(({ offer }) => offer === null).length;
  const known = paid.reduce((sum, { offer }) => sum + (offer?.hourlyUsd ?? 0), 0);
  let refused = 0;
  return {
    allows() {
      // Sums of prices such as 0.1 are not exact.
      const isAllowed = limitUsd === undefined || (usual === undefined ? waiting === 0 : known + (waiting + 1) * usual <= limitUsd + 1e-9);
      if (isAllowed) waiting++;
      else refused++;
      return isAllowed;
    },
    get refused() {
      return refused;
    },
  };
}
