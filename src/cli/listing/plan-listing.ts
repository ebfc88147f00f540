import { countReplicas } from '../../domain/plan.ts';
import { dollars, hourlyPrice } from '../../domain/price.ts';
import type { ControllerPlan } from '../../launcher/controller-plan.ts';
import type { PlacementPlan, PlannedOffer } from '../../provision/placement-plan.ts';
import { shortGb } from '../../shared/units.ts';
import { oneLine } from './display-text.ts';
import { ranges } from './format-values.ts';
import { renderTable, type Column } from './table.ts';

interface PlanListing {
  /** Every candidate with the reason for or against it, not only the best. */
  readonly all: boolean;
  readonly width: number;
}

/** Offers that are shown although they were not chosen. */
const shownNext = 5;

const columns: readonly Column<PlannedOffer>[] = [
  { title: 'REPLICA', value: ({ replicas }) => ranges(replicas), cutLast: true },
  { title: 'LOCATION', value: locationOf, cutLast: true },
  { title: 'MACHINE', value: ({ instanceType, nodes }) => (nodes > 1 ? `${nodes}x ${instanceType}` : instanceType), shrinksTo: 14 },
  { title: 'VCPUS', value: ({ cpus }) => String(cpus), dropOrder: 2 },
  { title: 'MEM(GB)', value: ({ memoryGb }) => shortGb(memoryGb), dropOrder: 1 },
  { title: 'GPUS', value: ({ accelerators }) => accelerators ?? '-', dropOrder: 3 },
  { title: 'SPOT', value: ({ spot }) => (spot ? 'yes' : '-'), dropOrder: 4 },
  { title: '$/H', value: ({ hourlyUsd }) => dollars(hourlyUsd) },
  { title: '$/MONTH', value: ({ monthlyUsd }) => dollars(monthlyUsd) },
  { title: 'WHY', value: ({ why }) => why, shrinksTo: 12 },
];

/** A plan as lines: a table, the total cost of the replicas, and notes. */
export function renderPlan(plan: PlacementPlan, { all, width }: PlanListing): readonly string[] {
  const chosen = plan.offers.filter(({ verdict }) => verdict === 'chosen');
  const others = plan.offers.filter(({ verdict }) => verdict !== 'chosen');
  const shown = all ? [...chosen, ...others] : [...chosen, ...others.filter(({ verdict }) => verdict !== 'excluded').slice(0, shownNext)];
  const hidden = others.length - (shown.length - chosen.length);
  const table = shown.length === 0 ? [] : renderTable(columns, shown, width);
  const excludedProviders = all
    ? plan.places.flatMap(({ name, why }) => (why === null ? [] : [`${name} takes no part: ${oneLine(why)}`]))
    : [];
  return [
    ...table,
    ...(hidden > 0 ? [`(${hidden} more; --all shows them)`] : []),
    ...(chosen.length > 0 ? [renderCost(plan)] : []),
    ...excludedProviders,
    ...plan.notes.map((note) => `Note: ${oneLine(note)}`),
  ];
}

function renderCost({ offers, hourlyUsd, monthlyUsd, withoutSpot }: PlacementPlan): string {
  const placedCount = offers.reduce((sum, { replicas }) => sum + replicas.length, 0);
  const what = placedCount === 1 ? '1 replica' : `${placedCount} replicas`;
  const range =
    withoutSpot === undefined
      ? ''
      : ` While no spot replica is ready: ${countReplicas(withoutSpot.replicas, 'on-demand')}, ${hourlyPrice(withoutSpot.hourlyUsd)}.`;
  if (hourlyUsd === 0) return `${what}: free, on machines of your own.${range}`;
  return `${what}: ${hourlyPrice(hourlyUsd)}, ${dollars(monthlyUsd)} $/month (730 hours), without traffic.${range}`;
}

function locationOf({ provider, region, zone }: Pick<PlannedOffer, 'provider' | 'region' | 'zone'>): string {
  // A zone's name mostly begins with its region's name.
  return `${provider}/${zone === null ? region : zone.startsWith(region) ? zone : `${region}/${zone}`}`;
}

/** Where the controller is or would be, as lines. */
export function renderController({ machine, hourlyUsd, monthlyUsd, isNew, given, note }: ControllerPlan): readonly string[] {
  const price = hourlyUsd === 0 ? 'free' : `${hourlyPrice(hourlyUsd)}, ${dollars(monthlyUsd)} $/month while it runs`;
  const where = `${locationOf(machine)}, ${machine.instanceType} (${price})`;
  return [
    isNew ? `Controller: a new one at ${where}.` : `Controller: there is one at ${where}.`,
    ...given.map((summary) => `  It is given ${oneLine(summary)}.`),
    ...(note === null ? [] : [`Note: ${note}`]),
  ];
}
