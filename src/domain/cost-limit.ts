import type { Draft } from './decision.ts';
import type { Market } from './placement.ts';
import { countReplicas } from './plan.ts';
import type { ReplicaRecord } from './records.ts';
import { isEnded } from './replica/replica-state.ts';

/** Sums of prices such as 0.1 are not exact. Far below a price, US dollars. */
const roundingUsd = 1e-9;

/** What a service may still launch within its price limit. */
interface Budget {
  /** Whether one more replica is within the limit; it then counts. */
  readonly allows: (launch: { readonly version: number; readonly market: Market | null }) => boolean;
  /** How many were above the limit. */
  readonly refused: number;
}

const keyOf = ({ version, market }: Pick<ReplicaRecord, 'version' | 'market'>): string => `${version} ${market}`;

/**
 * A launch is priced like the newest replica of its version and market with a machine, as is each replica that waits for
 * one. While that price is unknown, one replica of the version and market at a time is launched. Replicas that terminate
 * still cost. The search for a machine compares its real price with `highestPrice`.
 */
export function budgetOf(limitUsd: number | undefined, replicas: readonly ReplicaRecord[]): Budget {
  const usualOf = ({ version, market }: Pick<ReplicaRecord, 'version' | 'market'>): number | undefined =>
    replicas.findLast((one) => one.offer !== null && one.version === version && (market === null || one.market === market))?.offer
      ?.hourlyUsd;
  const paid = replicas.filter(({ state }) => !isEnded(state));
  const waiting = paid.filter(({ offer }) => offer === null);
  const unknown = new Set(waiting.filter((one) => usualOf(one) === undefined).map(keyOf));
  let known = [...paid.flatMap(({ offer }) => offer?.hourlyUsd ?? []), ...waiting.flatMap((one) => usualOf(one) ?? [])].reduce(
    (sum, usd) => sum + usd,
    0,
  );
  let refused = 0;
  return {
    allows(launch) {
      const usual = usualOf(launch);
      const isWithin = limitUsd === undefined || (usual === undefined ? known < limitUsd : known + usual <= limitUsd + roundingUsd);
      if (!isWithin) refused++;
      // It waits for the first price. The limit does not refuse it.
      else if (usual === undefined && unknown.has(keyOf(launch)) && limitUsd !== undefined) return false;
      else if (usual === undefined) unknown.add(keyOf(launch));
      else known += usual;
      return isWithin;
    },
    get refused() {
      return refused;
    },
  };
}

/**
 * The highest price that the next machine of a launch may have, US dollars per hour for all its nodes; undefined: there is
 * no limit. All replicas that have not ended count with their offers. `held` is what another launch asks for now: its
 * record may not show it yet. At least 0, because a free machine never exceeds the limit.
 */
export function highestPrice(
  limitUsd: number | undefined,
  replicas: readonly Pick<ReplicaRecord, 'key' | 'state' | 'offer'>[],
  launch: string,
  held: (launch: string) => number,
): number | undefined {
  if (limitUsd === undefined) return undefined;
  const others = replicas.filter(({ key, state }) => key !== launch && !isEnded(state));
  const spent = others.reduce((sum, { key, offer }) => sum + Math.max(offer?.hourlyUsd ?? 0, held(key)), 0);
  return Math.max(0, limitUsd - spent) + roundingUsd;
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
