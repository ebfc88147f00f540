import type { ReplicaView, ServiceView } from '../api/contract.ts';
import { failedStates } from '../domain/replica-state.ts';
import { wrapText } from './command-text.ts';
import { oneLine, safeLines, truncateMiddle } from './display-text.ts';
import { formatAge, formatDuration, formatPrice } from './format-time.ts';
import { ranges } from './number-ranges.ts';
import { renderTable, type Column } from './table.ts';
import type { Tone } from './ui.ts';

/** How a listing is to look. */
export interface ListingOptions {
  /** Columns of the terminal; infinite for pipes. */
  readonly width: number;
  /** Wall time, ms. */
  readonly now: number;
  readonly verbose: boolean;
  readonly paint: (tone: Tone, text: string) => string;
}

type ReplicaRow = ReplicaView & { readonly service: string };

/** Replicas shown of one service unless all are asked for: a crash loop is not to push everything else off the screen. */
const shownReplicas = 10;

/** What `svc serve status` prints for services: a table of them, one of their replicas, and the reasons of what is not well. */
export function renderServices(services: readonly ServiceView[], options: ListingOptions): readonly string[] {
  if (services.length === 0) return ['No live services.'];
  const { lines, hidden } = pickReplicas(services, options.verbose);
  return [
    ...renderTable(serviceColumns(services, options), services, options.width),
    ...services.flatMap((service) => [
      ...exposedLine(service),
      ...balancersLine(service, options),
      ...reasonLines(service.name, service.reason, options),
    ]),
    '',
    options.paint('strong', 'Service Replicas'),
    ...(lines.length === 0 ? ['No replicas yet.'] : renderTable(replicaColumns(lines, options), lines, options.width)),
    ...(hidden === 0 ? [] : [`... ${hidden} more; --verbose shows all`]),
    ...replicaReasons(lines, options),
  ];
}

function exposedLine({ name, exposed }: ServiceView): readonly string[] {
  return exposed ? [`  ${name}: its endpoint is exposed: other machines reach it`] : [];
}

/** Balancers on other machines, where one is not well or all of it is asked for. */
function balancersLine({ name, balancers }: ServiceView, { verbose }: ListingOptions): readonly string[] {
  if (balancers === undefined) return [];
  const well = balancers.filter(({ status }) => status === 'listening').length;
  if (well === balancers.length && well > 0 && !verbose) return [];
  const each = balancers.map((one) => `${one.name} ${one.status}`).join(', ');
  return [`  ${name}: ${well} of ${balancers.length} balancers serve its endpoint${each === '' ? '' : `: ${each}`}`];
}

/** Lines of the terminal that a reason may take unless all of it is asked for. */
export const reasonRows = 3;

/** Why something is not well: in short, with what a program said last, or as a whole. */
function reasonLines(label: string, reason: string | null, { verbose, width, paint }: ListingOptions): readonly string[] {
  if (reason === null) return [];
  const lines = verbose
    ? safeLines(`  ${label}: ${reason}`).map((line, index) => (index === 0 ? line : `    ${line}`))
    : [truncateMiddle(`  ${label}: ${shortReason(reason)}`, reasonRows * width)];
  return lines.flatMap((line) => wrapText(line, width, 4).split('\n')).map((line) => paint('quiet', line));
}

/** Reasons of replicas; in short, several of one service that say the same say it once. */
function replicaReasons(rows: readonly ReplicaRow[], options: ListingOptions): readonly string[] {
  const keyOf = ({ service, id, reason }: ReplicaRow): string =>
    JSON.stringify([service, options.verbose || reason === null ? id : shortReason(reason)]);
  return [...Map.groupBy(rows, keyOf).values()].flatMap((alike) => {
    const ids = ranges(alike.map(({ id }) => id));
    return alike.slice(0, 1).flatMap(({ service, reason }) => reasonLines(`${service} ${ids}`, reason, options));
  });
}

/** The first line of a reason, which says what happened, and the last line that the program wrote, which often says why. */
export function shortReason(reason: string): string {
  const [first = '', ...output] = safeLines(reason);
  const said = output.map((line) => line.trim()).findLast((line) => line !== '' && !line.startsWith('[svc '));
  if (said === undefined) return oneLine(first);
  return `${oneLine(first).replace(/[.:]?( Its last output)?:?$/, '')}: ${oneLine(said)}`;
}

/** Whether a column says the same in every row, so that leaving it out loses nothing. */
function isConstant<Row>(rows: readonly Row[], value: (row: Row) => unknown): boolean {
  return new Set(rows.map(value)).size <= 1;
}

/** The newest replicas of each service, those that live first. */
function pickReplicas(services: readonly ServiceView[], all: boolean): { readonly lines: readonly ReplicaRow[]; readonly hidden: number } {
  let hidden = 0;
  const lines = services.flatMap((service) => {
    const rows = service.replicas.map((replica) => ({ ...replica, service: service.name }));
    if (all || rows.length <= shownReplicas) return rows;
    hidden += rows.length - shownReplicas;
    const kept = rows.toSorted((a, b) => Number(b.endedAt === null) - Number(a.endedAt === null) || b.id - a.id).slice(0, shownReplicas);
    return kept.toSorted((a, b) => a.id - b.id);
  });
  return { lines, hidden };
}

const versions = ({ activeVersions }: ServiceView): string => activeVersions.join(',');

/** How many there are; before the first ones are recorded, how many there are to be: a service that begins is not one without replicas. */
function replicasMeant({ status, replicas, replicasTotal, targetReplicas }: ServiceView): number {
  const begins = replicas.length === 0 && (status === 'CONTROLLER_INIT' || status === 'REPLICA_INIT');
  return begins ? targetReplicas : replicasTotal;
}

function serviceColumns(services: readonly ServiceView[], options: ListingOptions): readonly Column<ServiceView>[] {
  const columns: readonly Column<ServiceView>[] = [
    { title: 'NAME', value: ({ name }) => name, shrinksTo: 16, cutLast: true },
    { title: 'VERSION', value: versions, dropOrder: isConstant(services, versions) ? 1 : 3 },
    { title: 'UPTIME', value: ({ uptimeSeconds }) => (uptimeSeconds === null ? '-' : formatDuration(uptimeSeconds)), dropOrder: 2 },
    { title: 'STATUS', value: ({ status }) => status, paint: (cell, { status }) => options.paint(toneOf(status), cell) },
    { title: 'REPLICAS', value: (service) => `${service.replicasReady}/${replicasMeant(service)}` },
    { title: 'ENDPOINT', value: ({ endpoint }) => endpoint },
  ];
  if (!options.verbose) return columns;
  return [
    ...columns,
    { title: 'AUTOSCALING_POLICY', value: ({ autoscaling }) => autoscaling, shrinksTo: 12 },
    { title: 'LOAD_BALANCING_POLICY', value: ({ loadBalancingPolicy }) => loadBalancingPolicy, shrinksTo: 12 },
    { title: 'REQUESTED_RESOURCES', value: ({ requestedResources }) => requestedResources, shrinksTo: 12 },
  ];
}

function replicaColumns(rows: readonly ReplicaRow[], options: ListingOptions): readonly Column<ReplicaRow>[] {
  const isFree = rows.every(({ hourlyUsd }) => hourlyUsd === null || hourlyUsd === 0);
  return [
    { title: 'SERVICE_NAME', value: ({ service }) => service, shrinksTo: 12, cutLast: true },
    { title: 'ID', value: ({ id }) => String(id) },
    { title: 'VERSION', value: ({ version }) => String(version), dropOrder: isConstant(rows, ({ version }) => version) ? 2 : 7 },
    { title: 'ENDPOINT', value: ({ endpoint }) => shortEndpoint(endpoint), dropOrder: 3 },
    { title: 'LAUNCHED', value: ({ launchedAt }) => formatAge(launchedAt, options.now), dropOrder: 4 },
    { title: 'INFRA', value: infraOf, shrinksTo: 8 },
    { title: 'RESOURCES', value: (row) => row.resources ?? '-', shrinksTo: 9, dropOrder: 5 },
    { title: 'PRICE/H', value: ({ hourlyUsd }) => formatPrice(hourlyUsd), dropOrder: isFree ? 1 : 6 },
    { title: 'STATUS', value: ({ status }) => status, paint: (cell, { status }) => options.paint(toneOf(status), cell) },
  ];
}

/** Where a replica listens. One with a network of its own is reached by a socket, whose path helps nobody: its port says what it is. */
function shortEndpoint(endpoint: string | null): string {
  const port = endpoint === null ? undefined : /^unix:.*:(\d+)$/s.exec(endpoint)?.[1];
  return port === undefined ? (endpoint ?? '-') : `:${port} (isolated)`;
}

/** `place/region/zone` as far as known. */
export function infraOf(row: { readonly provider: string | null; readonly region: string | null; readonly zone?: string | null }): string {
  // A place without regions has one that is called like the place.
  const parts = [row.provider, row.region === row.provider ? null : row.region, row.zone ?? null];
  return parts.filter((part) => part !== null).join('/') || '-';
}

const failed: readonly string[] = [...failedStates, 'CONTROLLER_FAILED', 'FAILED_SETUP'];
const good: readonly string[] = ['READY', 'UP', 'SUCCEEDED'];
const over: readonly string[] = ['TERMINATED', 'CANCELLED', 'STOPPED'];

/** The colour of a state, of whatever kind of thing. */
export function toneOf(state: string): Tone {
  if (good.includes(state)) return 'good';
  if (failed.includes(state)) return 'bad';
  return over.includes(state) ? 'quiet' : 'busy';
}
