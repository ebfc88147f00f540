import type { Draft } from './decision.ts';
import type { Market } from './placement.ts';
import { countReplicas } from './plan.ts';
import type { ReplicaRecord } from './records.ts';
import { isEnded } from './replica/replica-state.ts';

/** What a service may still launch within its price limit. */
interface Budget {
  /** Whether one more replica is within the limit; it then counts. */
  readonly allows: (launch: { readonly version: number; readonly market: Market | null }) => boolean;
  /** How many were above the limit. */
  readonly refused: number;
}

/**
 * A launch is priced like the newest replica of its version and market with a machine, as is each replica that waits for
 * one. While no price is known, one replica at a time is launched. Replicas that terminate still cost.
 */
export function budgetOf(limitUsd: number | undefined, replicas: readonly ReplicaRecord[]): Budget {
  const usualOf = ({ version, market }: Pick<ReplicaRecord, 'version' | 'market'>): number | undefined =>
    replicas.findLast((one) => one.offer !== null && one.version === version && (market === null || one.market === market))?.offer
      ?.hourlyUsd;
  const paid = replicas.filter(({ state }) => !isEnded(state));
  const waiting = paid.filter(({ offer }) => offer === null);
  let unknown = waiting.filter((one) => usualOf(one) === undefined).length;
  let known = [...paid.flatMap(({ offer }) => offer?.hourlyUsd ?? []), ...waiting.flatMap((one) => usualOf(one) ?? [])].reduce(
    (sum, usd) => sum + usd,
    0,
  );
  let refused = 0;
  return {
    allows(launch) {
      const usual = usualOf(launch);
      // Sums of prices such as 0.1 are not exact.
      const isWithin = limitUsd === undefined || (usual === undefined ? known < limitUsd : known + usual <= limitUsd + 1e-9);
      if (!isWithin) refused++;
      // It waits for the first price. The limit does not refuse it.
      else if (usual === undefined && unknown > 0 && limitUsd !== undefined) return false;
      else if (usual === undefined) unknown++;
      else known += usual;
      return isWithin;
    },
    get refused() {
      return refused;
    },
  };
}

/** Remembers whether the limit of the price keeps replicas from being launched, for the status; an event says it once. */
export function reportBudget(
  draft: Draft,
  refused: number,
  { desiredText, limitUsd }: { readonly desiredText: string; readonly limitUsd: number },
): void {
  const { costLimited } = draft.memory;
  if (refused === 0) return forgetBudget(draft);
  if (refused !== costLimited) draft.patch({ memory: { ...draft.memory, costLimited: refused } });
  if (costLimited !== undefined) return;
  const message = `${desiredText}, but max_hourly_cost ($${limitUsd}) does not allow ${countReplicas(refused, 'more')}.`;
  draft.event({ at: draft.world.now, cause: 'cost-limit', message });
}

/** The limit keeps no replica from being launched. */
export function forgetBudget(draft: Draft): void {
  const { costLimited, ...memory } = draft.memory;
  if (costLimited !== undefined) draft.patch({ memory });
}
