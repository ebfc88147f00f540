import type { ReplicaView, ServiceView, DiskView, LeftoverView } from '../../api/contract.ts';
import { countReplicas } from '../../domain/plan.ts';
import { failedStates } from '../../domain/replica/replica-state.ts';
import { wrapText } from '../command-text.ts';
import type { Tone } from '../ui.ts';
import { oneLine, safeLines, truncateMiddle } from './display-text.ts';
import { formatAge, formatDuration, formatPrice, formatUntil, ranges } from './format-values.ts';
import { renderTable, type Column } from './table.ts';

/** Options of a listing. */
export interface ListingOptions {
  /** Columns of the terminal; infinite for pipes. */
  readonly width: number;
  /** Wall time, ms. */
  readonly now: number;
  readonly verbose: boolean;
  readonly paint: (tone: Tone, text: string) => string;
  /** Rewrites the commands in our messages so that the user can paste them. */
  readonly asTyped: (text: string) => string;
}

type ReplicaRow = ReplicaView & { readonly service: string };

/** Replicas shown per service by default. Otherwise a crash loop would push everything else off the screen. */
const shownReplicas = 10;

/** Lines of `svc serve status`: tables of services and replicas, and the reasons of everything unhealthy. */
export function renderServices(services: readonly ServiceView[], options: ListingOptions): readonly string[] {
  if (services.length === 0) return ['No live services.'];
  const { lines, hidden } = pickReplicas(services, options.verbose);
  return [
    ...renderTable(serviceColumns(services, options), services, options.width),
    ...services.flatMap((service) => [
      ...exposedLine(service),
      ...updateLine(service),
      ...scalingLine(service, options),
      ...costLine(service),
      ...balancersLine(service, options),
      ...crashLines(service, options),
      ...reasonLines(service.name, service.reason, options),
      ...blockerLines(service, options),
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

function updateLine({ name, version, update, targetReplicas }: ServiceView): readonly string[] {
  // A stopped update is the reason of the service.
  if (update === undefined || update.stopped) return [];
  const share = update.share === null ? '' : `, which get ${Math.round(update.share * 1_000) / 10} % of the requests`;
  const held = update.paused ? `; held, to go on: svc serve resume ${name}` : '';
  const ready = `${update.replicasReady} of ${targetReplicas} replicas are ready`;
  return [`  ${name}: updating from version ${update.from} to ${version} (${update.mode}): ${ready}${share}${held}`];
}

function scalingLine({ name, lastScaling }: ServiceView, { now, width }: ListingOptions): readonly string[] {
  if (lastScaling === undefined) return [];
  return wrapText(`  ${name}: last scaling (${formatAge(lastScaling.at, now)}): ${oneLine(lastScaling.reason)}`, width, 4).split('\n');
}

function costLine({ name, costLimited }: ServiceView): readonly string[] {
  return costLimited === undefined ? [] : [`  ${name}: max_hourly_cost does not allow ${countReplicas(costLimited, 'more')}`];
}

/** Balancers on other machines. Shown when one is unhealthy, or with --verbose. */
function balancersLine({ name, balancers }: ServiceView, { verbose }: ListingOptions): readonly string[] {
  if (balancers === undefined) return [];
  const well = balancers.filter(({ status }) => status === 'listening').length;
  if (well === balancers.length && well > 0 && !verbose) return [];
  const each = balancers.map((one) => `${one.name} ${one.status}`).join(', ');
  return [`  ${name}: ${well} of ${balancers.length} balancers serve its endpoint${each === '' ? '' : `: ${each}`}`];
}

/** Crashes of the service's own processes. They are restarted, so no other output may show the crashes. */
function crashLines({ name, processCrashes = [] }: ServiceView, { now, width, paint, asTyped }: ListingOptions): readonly string[] {
  return processCrashes.flatMap(({ process, count, lastAt, lastError }) => {
    const times = count === 1 ? 'once' : `${count} times`;
    const log = asTyped(`svc serve logs ${name} --${process === 'reconciler' ? 'controller' : 'load-balancer'}`);
    const text = `  ${name}: its ${process} crashed ${times} in the last 10 minutes (last: ${formatAge(lastAt, now)}): ${oneLine(lastError)} Log: ${log}`;
    return wrapText(text, width, 4)
      .split('\n')
      .map((line) => paint('bad', line));
  });
}

const shownBlockers = 3;

/** Which provider refuses machines to a service, in the provider's own words, and when it is asked again. */
function blockerLines({ name, blockers = [] }: ServiceView, options: ListingOptions): readonly string[] {
  const shown = options.verbose ? blockers : blockers.slice(0, shownBlockers);
  const more = blockers.length - shown.length;
  const rest = `  ${name}: ${more} more ${more === 1 ? 'refusal' : 'refusals'}; see: svc serve status ${name} --verbose`;
  return [
    ...shown.flatMap(({ cause, covers, reason, nextAttemptAt, ...where }) => {
      const next = `next attempt ${formatUntil(nextAttemptAt, options.now)}`;
      const what = cause === 'provider-error' ? `gets an error (${cause}) from` : `is refused (${cause}) by`;
      return reasonLines(`${name} ${what} ${infraOf(where)}, ${next}, for ${covers}`, reason, options);
    }),
    ...(more === 0 ? [] : [options.paint('quiet', options.asTyped(rest))]),
  ];
}

/** Terminal lines of a reason, unless the whole reason is requested. */
export const reasonRows = 3;

function reasonLines(label: string, reason: string | null, { verbose, width, paint }: ListingOptions): readonly string[] {
  if (reason === null) return [];
  const lines = verbose
    ? safeLines(`  ${label}: ${reason}`).map((line, index) => (index === 0 ? line : `    ${line}`))
    : [truncateMiddle(`  ${label}: ${shortReason(reason)}`, reasonRows * width)];
  return lines.flatMap((line) => wrapText(line, width, 4).split('\n')).map((line) => paint('quiet', line));
}

/** Reasons of replicas. In short form, equal reasons of one service are shown once. */
function replicaReasons(rows: readonly ReplicaRow[], options: ListingOptions): readonly string[] {
  const keyOf = ({ service, id, reason }: ReplicaRow): string =>
    JSON.stringify([service, options.verbose || reason === null ? id : shortReason(reason)]);
  return [...Map.groupBy(rows, keyOf).values()].flatMap((alike) => {
    const ids = ranges(alike.map(({ id }) => id));
    return alike.slice(0, 1).flatMap(({ service, reason }) => reasonLines(`${service} ${ids}`, reason, options));
  });
}

/** The first line says what happened, the last line of the program's output often says why: returns both. */
export function shortReason(reason: string): string {
  const [first = '', ...output] = safeLines(reason);
  const said = output.map((line) => line.trim()).findLast((line) => line !== '' && !line.startsWith('[svc '));
  if (said === undefined) return oneLine(first);
  return `${oneLine(first).replace(/[.:]?( Its last output)?:?$/, '')}: ${oneLine(said)}`;
}

function isConstant<Row>(rows: readonly Row[], value: (row: Row) => unknown): boolean {
  return new Set(rows.map(value)).size <= 1;
}

/** The newest replicas of each service, live ones first. */
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

/** Before replicas are recorded, the desired number: a new service must not look like one without replicas. */
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

/** Where a replica listens: the port instead of a Unix socket, whose path does not help users. */
function shortEndpoint(endpoint: string | null): string {
  const port = endpoint === null ? undefined : /^unix:.*:(\d+)$/s.exec(endpoint)?.[1];
  return port === undefined ? (endpoint ?? '-') : `:${port} (isolated)`;
}

/** `provider/region/zone`, as far as known. */
export function infraOf(row: { readonly provider: string | null; readonly region: string | null; readonly zone?: string | null }): string {
  // A provider without regions uses its own name as the region.
  const parts = [row.provider, row.region === row.provider ? null : row.region, row.zone ?? null];
  return parts.filter((part) => part !== null).join('/') || '-';
}

const failed: readonly string[] = [...failedStates, 'CONTROLLER_FAILED', 'FAILED_SETUP'];
const good: readonly string[] = ['READY', 'UP', 'SUCCEEDED'];
const over: readonly string[] = ['TERMINATED', 'CANCELLED', 'STOPPED'];

/** The colour of a state of a service, replica, cluster or job. */
export function toneOf(state: string): Tone {
  if (good.includes(state)) return 'good';
  if (failed.includes(state)) return 'bad';
  return over.includes(state) ? 'quiet' : 'busy';
}

/** One line about the resources of a service or cluster that the state database does not know. */
export function describeLeftover({ kind, key, name, port, balancerPid, machines, unasked }: LeftoverView): string {
  const balancer = balancerPid === null ? 'no balancer runs; ' : `its balancer (process ${balancerPid}) serves port ${port ?? '?'}; `;
  const counts = [...Map.groupBy(machines, ({ provider }) => provider)].map(([provider, { length }]) => `${length} at ${provider}`);
  const running = machines.length === 0 ? 'no machines were found' : `machines: ${counts.join(', ')}`;
  const silent = unasked.map(({ provider, reason }) => `; could not ask ${provider} for machines: ${reason}`);
  const title = name === null ? `A ${kind}` : `${kind === 'cluster' ? 'Cluster' : 'Service'} '${name}'`;
  return oneLine(`${title} (${key}): ${kind === 'cluster' ? '' : balancer}${running}${silent.join('')}`);
}

/** Shown below the services by `svc status` and `svc serve status`. Empty when the database knows all resources. */
export function leftoverLines(
  leftovers: readonly LeftoverView[],
  { paint, asTyped }: Pick<ListingOptions, 'paint' | 'asTyped'>,
): readonly string[] {
  if (leftovers.length === 0) return [];
  return [
    '',
    paint('bad', 'Left over: the state database does not know these (it was emptied, restored or replaced).'),
    ...leftovers.map((leftover) => `  ${describeLeftover(leftover)}`),
    asTyped('  To keep them, put the right state.db back. To remove them, run: svc controller sweep'),
  ];
}

const mebibyte = 1_048_576;

/** Shown below the services by `svc status` and `svc serve status` when the disk of SVC_HOME is full or nearly full. */
export function diskLines(disk: DiskView | undefined, { paint, asTyped }: Pick<ListingOptions, 'paint' | 'asTyped'>): readonly string[] {
  if (disk === undefined) return [];
  const { folder, freeBytes, freeInodes } = disk;
  const inodes = freeInodes === null ? '' : ` and ${freeInodes} inodes`;
  const free = `${Math.floor(freeBytes / mebibyte)} MiB${inodes} are free`;
  const remedy = asTyped('Free space there, or run: svc serve down NAME');
  return ['', paint('bad', `The disk of ${folder} is full or nearly full: ${free}. ${remedy}`)];
}
