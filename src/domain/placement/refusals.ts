import { kindOf, type PlaceableOffer, type Refusal, type RefusalKind, type RefusalScope } from '../placement.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { Random } from '../../shared/random.ts';

const backoffs: Readonly<Record<RefusalKind, Backoff>> = {
  // Machines become available within minutes. Twice the first delay is about what a cloud takes to reclaim one.
  capacity: { firstMs: 30_000, longestMs: 300_000 },
  // A user raises the quota, or another machine of the account ends.
  quota: { firstMs: 60_000, longestMs: 900_000 },
  // Spot prices change every few minutes.
  price: { firstMs: 300_000, longestMs: 300_000 },
  // A temporary policy fault ends as suddenly as it began. A missing right needs manual action.
  permission: { firstMs: 30_000, longestMs: 300_000 },
  // Clouds refill the allowance of calls within seconds.
  throttled: { firstMs: 2_500, longestMs: 40_000, jitter: 0.5 },
  // A failed service or network recovers within seconds or hours. A request costs nothing.
  'provider-error': { firstMs: 5_000, longestMs: 60_000, jitter: 0.5 },
  // The provider lacks something, or a policy forbids the request. An administrator may change that at any minute.
  setup: { firstMs: 30_000, longestMs: 300_000 },
  // Providers add types and images within days. A user corrects a wrong setting within minutes.
  unsupported: { firstMs: 300_000, longestMs: 3_600_000 },
  // The cause is unknown, and each attempt may cost money.
  'failed-launch': { firstMs: 30_000, longestMs: 900_000 },
};

/** The quota of a namespace frees with each pod that ends, such as the pod that a replica replaces. */
const namespaceQuota: Backoff = { firstMs: 5_000, longestMs: 60_000 };

/**
 * A zone without spot capacity is asked again soon: when all zones have closed, the first that opens must be found. A
 * refused request costs nothing.
 */
const spotCapacity: Backoff = { firstMs: 30_000, longestMs: 60_000 };

/** Backoff after late failures without a common scope. Without it the search would burst into ever dearer offers. */
export const launchPace: Backoff = { firstMs: 10_000, longestMs: 900_000 };

/** Whether it is the pause between launches after late failures of several scopes, not one of these failures. */
const isPace = ({ kind, scope }: Pick<Refusal, 'kind' | 'scope'>): boolean =>
  kind === 'failed-launch' && (scope === 'whole-region' || scope === 'provider');

/** The backoff for a cause and its scope. */
export function backoffOf({ kind, scope }: Pick<Refusal, 'kind' | 'scope'>): Backoff {
  if (kind === 'quota' && scope === 'namespace') return namespaceQuota;
  return isPace({ kind, scope }) ? launchPace : backoffs[kind];
}

/** Kinds that say nothing about the machines of a location: the provider did not examine the request. */
export const kindsWithoutVerdict: ReadonlySet<RefusalKind> = new Set(['throttled', 'provider-error']);

/** Delay for a refusal, ms. Without `random`, the upper limit of the delay. */
function pauseMs(refusal: Pick<Refusal, 'kind' | 'scope' | 'count' | 'offer'>, random?: Random): number {
  const isSpotZone = refusal.offer.spot && refusal.kind === 'capacity' && refusal.scope === 'zone';
  return delayMs(isSpotZone ? spotCapacity : backoffOf(refusal), refusal.count, random);
}

/** Refusals are remembered for this long after their end, ms: a further one counts as consecutive. */
const memoryMs = 900_000;
const isRemembered = ({ until }: Refusal, now: number): boolean => until > now - memoryMs;

/** Limit of remembered refusals. Those that end soonest are dropped first. */
const longestMemory = 200;

/**
 * A change at the provider may end a refusal, but no sooner than this after it began. A busy namespace must not cause
 * an attempt per change. Pods of a refused group look like room for the group each second until they are gone.
 */
const earlyEndBackoff: Backoff = { firstMs: 1_000, longestMs: 5_000 };

/** A refusal as the provider reported it. */
export interface Refused {
  readonly kind: RefusalKind;
  readonly scope: RefusalScope;
  readonly reason: string;
}

/** Providers count calls per region or account, never per kind of machine. */
const effectiveScope = ({ kind, scope }: Pick<Refusal, 'kind' | 'scope'>): RefusalScope =>
  kind === 'throttled' && (scope === 'zone' || scope === 'region') ? 'whole-region' : scope;

/**
 * Whether a refusal also applies to an offer. A quota counts vCPUs or accelerators of a family over a region: it also
 * refuses machines with the same accelerators that are as large or larger.
 */
export function covers(refusal: Pick<Refusal, 'offer' | 'kind' | 'scope'>, offer: PlaceableOffer): boolean {
  const { offer: refused, kind } = refusal;
  if (refused.provider !== offer.provider) return false;
  const scope = effectiveScope(refusal);
  if (scope === 'provider') return true;
  if (refused.region !== offer.region) return false;
  if (scope === 'whole-region') return true;
  const isAsLarge = refused.accelerator?.name === offer.accelerator?.name && offer.cpus >= refused.cpus;
  if (scope === 'namespace') return isAsLarge;
  if (scope === 'zone' && refused.zone !== offer.zone) return false;
  if (kind === 'quota' && scope === 'region') return refused.spot === offer.spot && isAsLarge;
  return kindOf({ ...refused, zone: undefined }) === kindOf({ ...offer, zone: undefined });
}

/** The refusal with the latest end that forbids to ask for an offer now; undefined when the offer may be asked for. */
export function refusalOf(offer: PlaceableOffer, refusals: readonly Refusal[], now: number): Refusal | undefined {
  let longest: Refusal | undefined;
  for (const refusal of refusals) {
    if (refusal.until > now && covers(refusal, offer) && refusal.until > (longest?.until ?? 0)) longest = refusal;
  }
  return longest;
}

/** Whether a refusal has the cause and the scope of a new one. The offers may differ. */
const isSame = (refusal: Refusal, offer: PlaceableOffer, { kind, scope }: Refused): boolean =>
  refusal.kind === kind && refusal.scope === scope && covers(refusal, offer) && covers({ offer, kind, scope }, refusal.offer);

/** Records a refusal. `chance` in [0, 1) spreads the retries after throttling and errors of the provider. */
export function rememberRefusal(
  refusals: readonly Refusal[],
  offer: PlaceableOffer,
  refused: Refused,
  now: number,
  chance: number,
): readonly Refusal[] {
  // Launches that ask at the same time get the same refusal. It does not count again while the first one is in force.
  return remember(refusals, offer, refused, { now, chance, isNext: ({ until }) => until <= now });
}

/**
 * Records a refusal after acceptance at `askedAt`; only its scope is paused. A late failure outside an earlier one's
 * scope shows a larger fault: the narrowest scope that includes both is then paused too, until a machine there runs.
 */
export function rememberLateRefusal(
  refusals: readonly Refusal[],
  offer: PlaceableOffer,
  refused: Refused,
  askedAt: number,
  now: number,
): readonly Refusal[] {
  // A machine accepted before the first failure was known gives no new information.
  const isNext = ({ at = 0 }: Refusal): boolean => askedAt >= at;
  const how = { now, chance: 0.5, isLate: true, isNext };
  const scope = paceScope(refusals, offer, refused, now);
  const learned = remember(refusals, offer, refused, how);
  return scope === undefined ? learned : remember(learned, offer, { kind: 'failed-launch', scope, reason: refused.reason }, how);
}

/**
 * The narrowest scope of a late failure and the provider's recent ones; undefined when all have one cause and scope. A
 * pause is no failure, but one that covers the offer continues: no machine there has run since.
 */
function paceScope(refusals: readonly Refusal[], offer: PlaceableOffer, refused: Refused, now: number): RefusalScope | undefined {
  const { provider, region } = offer;
  const others = refusals.filter(
    (one) =>
      one.isLate === true &&
      one.offer.provider === provider &&
      isRemembered(one, now) &&
      (isPace(one) ? covers(one, offer) : !isSame(one, offer, refused)),
  );
  if (others.length === 0) return undefined;
  return others.every((one) => one.scope !== 'provider' && one.offer.region === region) ? 'whole-region' : 'provider';
}

interface Remembering {
  readonly now: number;
  readonly chance: number;
  readonly isLate?: boolean;
  /** Whether this refusal is consecutive to the remembered one. */
  readonly isNext: (before: Refusal) => boolean;
}

function remember(
  refusals: readonly Refusal[],
  offer: PlaceableOffer,
  refused: Refused,
  { now, chance, isLate = false, isNext }: Remembering,
): readonly Refusal[] {
  const { kind, scope, reason } = refused;
  const before = refusals.find((one) => isSame(one, offer, refused));
  const count = before === undefined ? 1 : before.count + (isNext(before) ? 1 : 0);
  const waitMs = pauseMs({ kind, scope, count, offer }, () => chance);
  const { provider, region, zone, instanceType, cpus, accelerator, spot, hourlyUsd } = offer;
  const kept = refusals.filter((one) => one !== before && isRemembered(one, now));
  const all = [
    ...kept,
    {
      offer: { provider, region, zone, instanceType, cpus, accelerator, spot, hourlyUsd },
      kind,
      scope,
      count,
      at: now,
      until: Math.max(before?.until ?? 0, Math.round(now + waitMs)),
      reason,
      ...((isLate || before?.isLate === true) && { isLate: true }),
      ...(before?.triedBy !== undefined && { triedBy: before.triedBy }),
    },
  ];
  if (all.length <= longestMemory) return all;
  // Late refusals are kept first. Without them, launches that cost money would continue without a pause.
  return all.toSorted((a, b) => Number(b.isLate ?? false) - Number(a.isLate ?? false) || b.until - a.until).slice(0, longestMemory);
}

const isLateOf = (refusal: Refusal, offer: PlaceableOffer): boolean => refusal.isLate === true && covers(refusal, offer);

/** How long launches wait for the first launch after a late failure, ms. Nearly all such failures show in a minute. */
export const trialMs = 90_000;

/** Records that the launch `launch` asks despite late failures. Launches under the same refusals await its result. */
export function paceLaunches(refusals: readonly Refusal[], offer: PlaceableOffer, launch: string, now: number): readonly Refusal[] {
  return change(refusals, (one) =>
    isLateOf(one, offer) ? { ...one, until: Math.max(one.until, now + Math.max(trialMs, pauseMs(one))), triedBy: launch } : one,
  );
}

/**
 * Records that the launch `launch` ended without a running machine. If others waited for it, the next may ask when the
 * delay after the last late failure is over. A launch that asked before that failure does not end the wait.
 */
export function resumeLaunches(refusals: readonly Refusal[], offer: PlaceableOffer, launch: string, now: number): readonly Refusal[] {
  return change(refusals, (one) => {
    if (!isLateOf(one, offer) || one.triedBy !== launch) return one;
    const until = Math.max(now, (one.at ?? 0) + pauseMs(one));
    return one.until > until ? { ...one, until } : one;
  });
}

/** Drops the refusals of an accepted offer: their cause has passed. A late one goes only when the machine runs. */
export function forgetRefusals(refusals: readonly Refusal[], offer: PlaceableOffer, runs = false): readonly Refusal[] {
  const left = refusals.filter((one) => (one.isLate === true && !runs) || !covers(one, offer));
  return left.length === refusals.length ? refusals : left;
}

/** Ends refusals whose cause may have changed at the provider. A repeated refusal still counts as consecutive. */
export function endRefusals(refusals: readonly Refusal[], isMeant: (refusal: Refusal) => boolean, now: number): readonly Refusal[] {
  return change(refusals, (one) => {
    const until = Math.max(now, (one.at ?? 0) + delayMs(earlyEndBackoff, one.count));
    return one.until > until && isMeant(one) ? { ...one, until } : one;
  });
}

/** The late refusals. They must stay: a process that restarts repeatedly would otherwise launch without a pause. */
export function lateRefusals(refusals: readonly Refusal[]): readonly Refusal[] {
  return refusals.filter(({ isLate }) => isLate === true);
}

/** Causes that pass by themselves. After the others, the user may have restarted the process to retry. */
const passing: readonly RefusalKind[] = ['capacity', 'price', 'throttled', 'provider-error', 'failed-launch'];

/** The stored refusals of an earlier process that still apply. None lasts longer than its backoff allows now. */
export function refusalsAfterRestart(refusals: readonly Refusal[], now: number): readonly Refusal[] {
  return refusals
    .filter(({ kind, isLate }) => passing.includes(kind) || isLate === true)
    .map((one) => ({ ...one, until: Math.min(one.until, now + pauseMs(one)) }));
}

function change(refusals: readonly Refusal[], each: (refusal: Refusal) => Refusal): readonly Refusal[] {
  const changed = refusals.map(each);
  return changed.some((one, index) => one !== refusals[index]) ? changed : refusals;
}

/** When the first of the offers may be asked for again, ms since the epoch; undefined when none of them is refused. */
export function nextAttemptAt(offers: readonly PlaceableOffer[], refusals: readonly Refusal[], now: number): number | undefined {
  const times = offers.flatMap((offer) => refusalOf(offer, refusals, now)?.until ?? []);
  return times.length === 0 ? undefined : times.reduce((first, time) => Math.min(first, time));
}

interface Blocker {
  readonly refusal: Refusal;
  /** When its offer may be asked for again, ms since the epoch. Another refusal may last longer. */
  readonly nextAttemptAt: number;
}

const sameWords = ({ offer, reason }: Refusal): string => JSON.stringify([offer.provider, reason]);

/** The refusals in force, the first to end first. Refusals with the same message appear once. */
export function blockersOf(refusals: readonly Refusal[], now: number): readonly Blocker[] {
  const held = refusals.filter(({ until }) => until > now);
  // The pause between launches has the same message as the failure that caused it.
  const reported = new Set(held.filter((one) => !isPace(one)).map(sameWords));
  const blockers = held
    .filter((one) => !isPace(one) || !reported.has(sameWords(one)))
    .map((refusal) => ({ refusal, nextAttemptAt: refusalOf(refusal.offer, held, now)?.until ?? refusal.until }));
  return blockers.toSorted((a, b) => a.nextAttemptAt - b.nextAttemptAt);
}

/** The scope of a refusal in words. */
export function describeScope({ offer, scope, kind }: Pick<Refusal, 'offer' | 'scope' | 'kind'>): string {
  const { provider, region, zone, instanceType, spot } = offer;
  const machine = `${instanceType}${spot ? ' (spot)' : ''}`;
  switch (scope) {
    case 'zone':
      return zone === undefined ? `${machine} in ${region}` : `${machine} in the zone ${zone}`;
    case 'region':
      return kind === 'quota' ? `${machine} and larger in ${region}` : `${machine} in ${region}`;
    case 'namespace':
      return `${machine} and larger in the namespace of ${region}`;
    case 'whole-region':
      return `everything in ${region}`;
    case 'provider':
      return `everything of ${provider}`;
  }
}
