import { kindOf, type PlaceableOffer, type Refusal, type RefusalKind, type RefusalScope } from '../placement.ts';

/** For how long a place is not asked again after its first refusal in a row, ms, and what further ones lengthen that to by doubling. */
const pauses: Readonly<Record<RefusalKind, { readonly firstMs: number; readonly longestMs: number }>> = {
  // Machines come back within minutes. Twice the first pause is about what a cloud takes to reclaim one.
  capacity: { firstMs: 30_000, longestMs: 300_000 },
  // A person has to raise it, or something else has to end.
  quota: { firstMs: 3_600_000, longestMs: 3_600_000 },
  // Prices of spot machines move every few minutes.
  price: { firstMs: 300_000, longestMs: 300_000 },
  permission: { firstMs: 3_600_000, longestMs: 3_600_000 },
  // Clouds refill the allowance of calls within seconds.
  throttled: { firstMs: 2_000, longestMs: 30_000 },
  // Something is missing there, or a rule of its own forbids it: who looks after it may mend that any minute.
  setup: { firstMs: 30_000, longestMs: 300_000 },
  unsupported: { firstMs: 86_400_000, longestMs: 86_400_000 },
};

/** How much of a short pause is left to chance, so that those who were throttled together do not come back together. */
const jitterShare = 0.5;

/** Refusals that ended so long ago are forgotten, ms; until then a further one counts as the next in a row. */
const memoryMs = 900_000;

/** More are not kept: the ones that end soonest are dropped first. */
const longestMemory = 200;

/** What a place said. */
export interface Refused {
  readonly kind: RefusalKind;
  readonly scope: RefusalScope;
  readonly reason: string;
}

/** Calls are counted for a region or an account, never for a kind of machine. */
const effectiveScope = ({ kind, scope }: Pick<Refusal, 'kind' | 'scope'>): RefusalScope =>
  kind === 'throttled' && (scope === 'zone' || scope === 'region') ? 'whole-region' : scope;

/**
 * Whether a refusal is about an offer too. A quota counts vCPUs or accelerators of a family over a region, so what it refuses once it also
 * refuses to machines with the same accelerators that are as large or larger.
 */
export function covers(refusal: Pick<Refusal, 'offer' | 'kind' | 'scope'>, offer: PlaceableOffer): boolean {
  const { offer: refused, kind } = refusal;
  if (refused.provider !== offer.provider) return false;
  const scope = effectiveScope(refusal);
  if (scope === 'place') return true;
  if (refused.region !== offer.region) return false;
  if (scope === 'whole-region') return true;
  if (scope === 'zone' && refused.zone !== offer.zone) return false;
  if (kind === 'quota' && scope === 'region') {
    return refused.spot === offer.spot && refused.accelerator?.name === offer.accelerator?.name && offer.cpus >= refused.cpus;
  }
  return kindOf({ ...refused, zone: undefined }) === kindOf({ ...offer, zone: undefined });
}

/** The refusal that holds longest of those that forbid to ask for an offer now; undefined when it may be asked for. */
export function refusalOf(offer: PlaceableOffer, refusals: readonly Refusal[], now: number): Refusal | undefined {
  let longest: Refusal | undefined;
  for (const refusal of refusals) {
    if (refusal.until > now && covers(refusal, offer) && refusal.until > (longest?.until ?? 0)) longest = refusal;
  }
  return longest;
}

const isSame = (refusal: Refusal, offer: PlaceableOffer, { kind, scope }: Refused): boolean =>
  refusal.kind === kind && refusal.scope === scope && kindOf(refusal.offer) === kindOf(offer);

/** Remembers a refusal. `chance` in [0, 1) spreads the return of those who were throttled. */
export function rememberRefusal(
  refusals: readonly Refusal[],
  offer: PlaceableOffer,
  refused: Refused,
  now: number,
  chance: number,
): readonly Refusal[] {
  const { kind, scope, reason } = refused;
  const before = refusals.find((one) => isSame(one, offer, refused));
  // Launches that ask at the same time learn the same thing once: it is no second refusal while the first one holds.
  const count = before === undefined ? 1 : before.until > now ? before.count : before.count + 1;
  const { firstMs, longestMs } = pauses[kind];
  const wholeMs = Math.min(longestMs, firstMs * 2 ** (count - 1));
  const pauseMs = kind === 'throttled' ? wholeMs * (1 - jitterShare + 2 * jitterShare * chance) : wholeMs;
  const { provider, region, zone, instanceType, cpus, accelerator, spot, hourlyUsd } = offer;
  const kept = refusals.filter((one) => one !== before && one.until > now - memoryMs);
  const all = [
    ...kept,
    {
      offer: { provider, region, zone, instanceType, cpus, accelerator, spot, hourlyUsd },
      kind,
      scope,
      count,
      until: Math.max(before?.until ?? 0, Math.round(now + pauseMs)),
      reason,
    },
  ];
  return all.length <= longestMemory ? all : all.toSorted((a, b) => b.until - a.until).slice(0, longestMemory);
}

/** A place that gave a machine is good again: whatever forbade to ask for that offer was wrong or is over. */
export function forgetRefusals(refusals: readonly Refusal[], offer: PlaceableOffer): readonly Refusal[] {
  const left = refusals.filter((one) => !covers(one, offer));
  return left.length === refusals.length ? refusals : left;
}

/** When the first of offers that are all refused may be asked for again, ms since the epoch; undefined when none of them is refused. */
export function nextAttemptAt(offers: readonly PlaceableOffer[], refusals: readonly Refusal[], now: number): number | undefined {
  const times = offers.flatMap((offer) => refusalOf(offer, refusals, now)?.until ?? []);
  return times.length === 0 ? undefined : times.reduce((first, time) => Math.min(first, time));
}
