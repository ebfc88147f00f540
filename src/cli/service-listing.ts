import type { ReplicaView, ServiceView } from '../api/contract.ts';
import { failedStates } from '../domain/replica-state.ts';
import { oneLine, truncate } from './display-text.ts';
import { formatAge, formatDuration, formatPrice } from './format-time.ts';
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
    ...renderTable(serviceColumns(options), services, options.width),
    ...reasonLines(services.map(({ name, reason }) => ({ label: name, reason }))),
    '',
    options.paint('strong', 'Service Replicas'),
    ...(lines.length === 0 ? ['No replicas yet.'] : renderTable(replicaColumns(options), lines, options.width)),
    ...(hidden === 0 ? [] : [`... ${hidden} more; --verbose shows all`]),
    ...reasonLines(lines.map(({ service, id, reason }) => ({ label: `${service} ${id}`, reason }))),
  ];

  function reasonLines(subjects: readonly { readonly label: string; readonly reason: string | null }[]): readonly string[] {
    return subjects.flatMap(({ label, reason }) =>
      reason === null ? [] : [options.paint('quiet', truncate(`  ${label}: ${oneLine(reason)}`, options.width))],
    );
  }
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

function serviceColumns(options: ListingOptions): readonly Column<ServiceView>[] {
  const columns: readonly Column<ServiceView>[] = [
    { title: 'NAME', value: ({ name }) => name, shrinksTo: 16 },
    { title: 'VERSION', value: ({ activeVersions }) => activeVersions.join(','), dropOrder: 1 },
    { title: 'UPTIME', value: ({ uptimeSeconds }) => (uptimeSeconds === null ? '-' : formatDuration(uptimeSeconds)), dropOrder: 2 },
    { title: 'STATUS', value: ({ status }) => status, paint: (cell, { status }) => options.paint(toneOf(status), cell) },
    { title: 'REPLICAS', value: ({ replicasReady, replicasTotal }) => `${replicasReady}/${replicasTotal}` },
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

function replicaColumns(options: ListingOptions): readonly Column<ReplicaRow>[] {
  return [
    { title: 'SERVICE_NAME', value: ({ service }) => service, shrinksTo: 12 },
    { title: 'ID', value: ({ id }) => String(id) },
    { title: 'VERSION', value: ({ version }) => String(version), dropOrder: 3 },
    { title: 'ENDPOINT', value: ({ endpoint }) => endpoint ?? '-', shrinksTo: 8, dropOrder: 1 },
    { title: 'LAUNCHED', value: ({ launchedAt }) => formatAge(launchedAt, options.now), dropOrder: 5 },
    { title: 'INFRA', value: infraOf, shrinksTo: 8 },
    { title: 'RESOURCES', value: (row) => (row.resources ?? '-') + (row.spot ? ' [spot]' : ''), shrinksTo: 9, dropOrder: 4 },
    { title: 'PRICE/H', value: ({ hourlyUsd }) => formatPrice(hourlyUsd), dropOrder: 2 },
    { title: 'STATUS', value: ({ status }) => status, paint: (cell, { status }) => options.paint(toneOf(status), cell) },
  ];
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
