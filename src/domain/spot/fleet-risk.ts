/** Spot replicas of a service in one zone. */
export interface ZoneFleet {
  readonly region: string;
  readonly count: number;
  /** Probability that the zone takes replicas of ours within the horizon. */
  readonly risk: number;
}

/** Share of a zone's losses that take all our replicas there. The others take half: the zone becomes smaller. */
const wholeZoneShare = 0.9;

/** Share of a zone's losses that hit all of its region at the same time. Regions are independent of each other. */
const wholeRegionShare = 0.2;

/**
 * Probability of each number of lost replicas within the horizon: the index is the number. Zones of one region must be
 * adjacent in `fleets`.
 */
export function lossDistribution(fleets: readonly ZoneFleet[]): readonly number[] {
  let all: readonly number[] = [1];
  let start = 0;
  for (let end = 1; end <= fleets.length; end += 1) {
    if (end < fleets.length && fleets[end]?.region === fleets[start]?.region) continue;
    all = withRegion(all, fleets.slice(start, end));
    start = end;
  }
  return all;
}

function withRegion(before: readonly number[], zones: readonly ZoneFleet[]): readonly number[] {
  const used = zones.filter(({ count }) => count > 0);
  const shared = used.length > 1 ? wholeRegionShare : 0;
  let after = before;
  for (const { count, risk } of used) after = withZone(after, count, risk * (1 - shared));
  if (shared === 0) return after;
  const shock = shared * used.reduce((worst, { risk }) => Math.max(worst, risk), 0);
  const total = used.reduce((sum, { count }) => sum + count, 0);
  const mixed = after.map((probability) => probability * (1 - shock));
  add(mixed, before, total, shock);
  return mixed;
}

function withZone(before: readonly number[], count: number, risk: number): readonly number[] {
  const after: number[] = [];
  for (let lost = 0; lost < before.length + count; lost += 1) after.push(0);
  add(after, before, 0, 1 - risk);
  add(after, before, Math.ceil(count / 2), risk * (1 - wholeZoneShare));
  add(after, before, count, risk * wholeZoneShare);
  return after;
}

/** Adds the probabilities of `from`, with `more` losses, times a factor. */
function add(to: number[], from: readonly number[], more: number, factor: number): void {
  for (let lost = 0; lost < from.length; lost += 1) to[lost + more] = (to[lost + more] ?? 0) + (from[lost] ?? 0) * factor;
}
