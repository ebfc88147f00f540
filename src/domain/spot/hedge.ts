import { lossDistribution, type ZoneFleet } from './fleet-risk.ts';
import { lossesPerHour, mayAskZone, type ZoneHistories } from './zone-history.ts';

/** A zone that may hold spot replicas of the service. */
interface SpotZone {
  /** Key of the zone in the histories. */
  readonly zone: string;
  readonly region: string;
  /** Of a spot replica there, per hour. */
  readonly price: number;
}

/** A launched replica that has not ended. Of an on-demand replica, zone and region do not matter. */
export interface HedgeReplica {
  readonly zone: string;
  readonly region: string;
  readonly isSpot: boolean;
  readonly isReady: boolean;
  /** Ms since the epoch. */
  readonly launchedAt: number;
}

/** What the hedge decides from. */
export interface HedgeFacts<R extends HedgeReplica = HedgeReplica> {
  /** Ready replicas that the service needs. */
  readonly target: number;
  /** Measured time from a launch until the replica is ready. */
  readonly coldStartMs: number;
  /** Of an on-demand replica, per hour. */
  readonly onDemandPrice: number;
  readonly zones: readonly SpotZone[];
  readonly replicas: readonly R[];
  readonly histories: ZoneHistories;
  /** Ms since the epoch. */
  readonly now: number;
}

/** How many launched replicas a service shall have, including those that start. */
interface HedgedMarkets {
  readonly spot: number;
  readonly onDemand: number;
}

/**
 * Price of an hour in which all replicas are missing, in hours of the service on demand. A higher one buys more spares:
 * on recorded capacity, 20 costs 4 % less and fails 11 % more requests, 26 costs 2 % more and fails 4 % fewer.
 */
const shortageWeight = 24;

/** Share of that worth when a replica is missing but the others can take its load. */
const anyMissingShare = 0.2;

/** Share of the replicas that may be missing before requests fail: services run at about 80 % of their capacity. */
const headroom = 0.2;

/** A loss is noticed and its replacement requested within this time. */
const reactionMs = 30_000;

/**
 * Time without a lost replica at which `shortageWeight` applies. Longer cold starts make every shortage longer: spares
 * pay for half of that, and the service accepts the other half (the geometric mean).
 */
const usualGapMs = 210_000;

/** Most spot spares, as a share of the target; at least two. */
const mostSpares = 0.15;

/** Costs that differ less are equal: rounding must not decide. */
const equalCost = 1e-9;

interface Fleet extends ZoneFleet {
  count: number;
  readonly zone: string;
  readonly price: number;
  /** Whether the zone may be asked now. */
  readonly mayAsk: boolean;
}

/** Spot replicas by zone. The functions below try changes on it and take them back. */
interface Plan {
  /** Sorted by region. */
  readonly fleets: readonly Fleet[];
  count: number;
  readonly target: number;
  readonly onDemandPrice: number;
}

/**
 * How many spot and on-demand replicas the service shall have now. Spot: at least the target, wherever there is room,
 * and spares as far as they save more shortage than they cost. On-demand replicas fill what ready spot replicas do not
 * give; more stay while spot runs in zones that changed lately. Decide again after each refusal.
 */
export function hedgeMarkets(facts: HedgeFacts): HedgedMarkets {
  const plan = planOf(facts);
  const readySpot = facts.replicas.filter(({ isSpot, isReady }) => isSpot && isReady).length;
  const fill = Math.max(0, facts.target - readySpot);
  const onDemand = Math.min(facts.target, Math.max(fill, cheapestOnDemand(plan).count));
  if (!plan.fleets.some(({ price }) => price < facts.onDemandPrice)) return { spot: 0, onDemand: facts.target };
  const isStarting = facts.replicas.some(({ isSpot, isReady }) => isSpot && !isReady);
  const spot = bestSize(plan);
  // A started replica is awaited. Otherwise decisions that change with each minute would start and end it in turn. During
  // an update the fleets include the other version: they must not raise the number without end.
  return { spot: isStarting ? Math.max(spot, Math.min(plan.count, mostSpot(facts.target))) : spot, onDemand };
}

/**
 * The zones that the next spot launch may ask, best first. A price difference outweighs a difference in risk only if it
 * is larger than the cost of the risk. For a spare: only zones in which it is worth its price, so perhaps none.
 */
export function orderZones(facts: HedgeFacts): readonly string[] {
  const plan = planOf(facts);
  const size = Math.max(plan.count + 1, bestSize(plan));
  const isSpare = plan.count >= plan.target;
  const without = costOf(plan, plan.count);
  const candidates = plan.fleets.filter(({ mayAsk }) => mayAsk).map((fleet) => ({ fleet, cost: costWith(plan, fleet, size) }));
  return candidates
    .filter(({ fleet }) => !isSpare || change(plan, fleet, 1, () => costOf(plan, size)) < without - equalCost)
    .toSorted((a, b) => a.cost - b.cost)
    .map(({ fleet }) => fleet.zone);
}

/**
 * The spot replica that ends first when `hedgeMarkets` wants fewer: its zone adds the most price and risk; there the
 * newest. Undefined while its end would leave fewer ready replicas than the target.
 */
export function firstToEnd<R extends HedgeReplica>(facts: HedgeFacts<R>): R | undefined {
  const spot = facts.replicas.filter(({ isSpot }) => isSpot);
  const ready = spot.filter(({ isReady }) => isReady).length;
  if (spot.length <= facts.target || ready <= facts.target) return undefined;
  const plan = planOf(facts);
  const zone = worstFleet(plan, plan.count - 1)?.zone;
  return spot.filter((replica) => replica.zone === zone).toSorted((a, b) => b.launchedAt - a.launchedAt)[0];
}

function planOf({ target, coldStartMs, onDemandPrice, zones, replicas, histories, now }: HedgeFacts): Plan {
  const horizonHours = Math.sqrt((coldStartMs + reactionMs) * usualGapMs) / 3_600_000;
  const counts = new Map<string, number>();
  for (const { zone, isSpot } of replicas) if (isSpot) counts.set(zone, (counts.get(zone) ?? 0) + 1);
  const known = new Set(zones.map(({ zone }) => zone));
  // Replicas may run in zones that are no longer offered. Those end first.
  const left = replicas.filter(({ zone, isSpot }) => isSpot && !known.has(zone)).map(({ zone, region }) => [zone, region] as const);
  const all = [...zones, ...[...new Map(left)].map(([zone, region]) => ({ zone, region, price: onDemandPrice }))];
  const fleets = all.map(({ zone, region, price }) => ({
    zone,
    region,
    price,
    count: counts.get(zone) ?? 0,
    risk: 1 - Math.exp(-lossesPerHour(histories[zone], now) * horizonHours),
    mayAsk: price < onDemandPrice && mayAskZone(histories[zone], now),
  }));
  fleets.sort((a, b) => (a.region === b.region ? 0 : a.region < b.region ? -1 : 1));
  return { fleets, count: fleets.reduce((sum, { count }) => sum + count, 0), target, onDemandPrice };
}

/** The target and the most spares. */
const mostSpot = (target: number): number => (target === 0 ? 0 : target + Math.max(2, Math.ceil(target * mostSpares)));

/** The number of spot replicas with the lowest cost. Zones that may not be asked get no more. */
function bestSize(plan: Plan): number {
  const most = mostSpot(plan.target);
  let best = plan.target;
  let least = Infinity;
  for (let size = plan.target; size <= most; size += 1) {
    const cost = costOf(plan, size);
    if (cost < least - equalCost) [least, best] = [cost, size];
  }
  return plan.target === 0 ? 0 : best;
}

/** Cost per hour when the plan is changed to a number of spot replicas, as far as zones may be asked. */
function costOf(plan: Plan, size: number): number {
  if (plan.count !== size) {
    const fleet = plan.count < size ? bestFleet(plan, size) : worstFleet(plan, size);
    if (fleet !== undefined) return change(plan, fleet, plan.count < size ? 1 : -1, () => costOf(plan, size));
  }
  return cheapestOnDemand(plan).cost + plan.fleets.reduce((sum, { count, price }) => sum + count * price, 0);
}

/** Evaluates the plan with one replica more or fewer in a zone. */
function change(plan: Plan, fleet: Fleet, by: 1 | -1, evaluate: () => number): number {
  fleet.count += by;
  plan.count += by;
  const result = evaluate();
  fleet.count -= by;
  plan.count -= by;
  return result;
}

/**
 * Price of one more replica in a zone, and the cost of all risk when there will be `size` spot replicas. Those that have
 * no zone yet count as safe: the first ones must leave room for the spread of all.
 */
function costWith(plan: Plan, fleet: Fleet, size: number, by: 1 | -1 = 1): number {
  return by * fleet.price + change(plan, fleet, by, () => shortageCost(plan, lossDistribution(plan.fleets), Math.max(size, plan.target)));
}

function bestFleet(plan: Plan, size: number): Fleet | undefined {
  return lowest(
    plan.fleets,
    ({ mayAsk }) => mayAsk,
    (fleet) => costWith(plan, fleet, size),
  );
}

function worstFleet(plan: Plan, size: number): Fleet | undefined {
  return lowest(
    plan.fleets,
    ({ count }) => count > 0,
    (fleet) => costWith(plan, fleet, size, -1),
  );
}

function lowest(fleets: readonly Fleet[], isMeant: (fleet: Fleet) => boolean, costOfFleet: (fleet: Fleet) => number): Fleet | undefined {
  let best: { fleet: Fleet; cost: number } | undefined;
  for (const fleet of fleets) {
    if (!isMeant(fleet)) continue;
    const cost = costOfFleet(fleet);
    if (best === undefined || cost < best.cost - equalCost) best = { fleet, cost };
  }
  return best?.fleet;
}

/** The number of on-demand replicas with the lowest cost beside the plan's spot replicas, once those are ready. */
function cheapestOnDemand(plan: Plan): { readonly count: number; readonly cost: number } {
  const losses = lossDistribution(plan.fleets);
  let best = { count: plan.target, cost: Infinity };
  for (let count = Math.max(0, plan.target - plan.count); count <= plan.target; count += 1) {
    const cost = count * plan.onDemandPrice + shortageCost(plan, losses, plan.count + count);
    if (cost < best.cost - equalCost) best = { count, cost };
  }
  return best;
}

/** Expected cost per hour of having too few ready replicas until lost ones are replaced. */
function shortageCost({ target, onDemandPrice }: Plan, losses: readonly number[], ready: number): number {
  let cost = 0;
  for (let lost = Math.max(0, ready - target + 1); lost < losses.length; lost += 1) {
    const overload = Math.max(0, (target - ready + lost) / target - headroom) / (1 - headroom);
    cost += (losses[lost] ?? 0) * (anyMissingShare + (1 - anyMissingShare) * overload);
  }
  return cost * shortageWeight * target * onDemandPrice;
}
