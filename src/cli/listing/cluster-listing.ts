import type { ClusterView, RouteReply } from '../../api/contract.ts';
import { formatAge, formatPrice } from './format-values.ts';
import { infraOf, toneOf, type ListingOptions } from './service-listing.ts';
import { renderTable, type Column } from './table.ts';

/** The controller's name in the list of clusters. A user's cluster cannot have it. */
export const controllerName = 'svc-controller';

interface ClusterRow {
  readonly name: string;
  readonly status: string;
  readonly launchedAt: string | null;
  readonly infra: string;
  readonly resources: string;
  readonly hourlyUsd: number | null;
  readonly jobs: string;
}

/** Lines of `svc status` about clusters: the controller first, then the user's clusters. */
export function renderClusters(
  health: RouteReply<'health'> | undefined,
  clusters: readonly ClusterView[],
  options: ListingOptions,
): readonly string[] {
  const rows = [...(health === undefined ? [] : [controllerRow(health)]), ...clusters.map(clusterRow)];
  if (rows.length === 0) return ['No existing clusters.'];
  return renderTable(columns(options), rows, options.width);
}

/** Lines that say where the ports of clusters are reached: on the machine of the controller, which may be another one. */
export function portLines(health: RouteReply<'health'> | undefined, clusters: readonly ClusterView[]): readonly string[] {
  const where = (health?.place ?? null) === null ? '' : " of the controller's machine";
  return clusters.flatMap(({ name, ports }) =>
    ports.map(({ port, address }) => `Port ${port} of '${name}' is reached at ${address}${where}`),
  );
}

function controllerRow(health: RouteReply<'health'>): ClusterRow {
  return {
    name: controllerName,
    status: 'UP',
    launchedAt: health.startedAt,
    infra: health.place === null ? 'local' : [health.place.provider, health.place.region].join('/'),
    resources: `${health.services}/${health.serviceLimit} services`,
    hourlyUsd: health.place?.hourlyUsd ?? 0,
    jobs: '-',
  };
}

function clusterRow(cluster: ClusterView): ClusterRow {
  const last = cluster.jobs.at(-1);
  return {
    name: cluster.name,
    status: cluster.status,
    launchedAt: cluster.launchedAt,
    infra: infraOf(cluster),
    resources: cluster.resources ?? '-',
    hourlyUsd: cluster.hourlyUsd,
    jobs: last === undefined ? '-' : `${last.id} ${last.status}`,
  };
}

function columns(options: ListingOptions): readonly Column<ClusterRow>[] {
  return [
    { title: 'NAME', value: ({ name }) => name, shrinksTo: 16 },
    { title: 'LAUNCHED', value: ({ launchedAt }) => formatAge(launchedAt, options.now), dropOrder: 2 },
    { title: 'INFRA', value: ({ infra }) => infra, shrinksTo: 8 },
    { title: 'RESOURCES', value: ({ resources }) => resources, shrinksTo: 12 },
    { title: 'PRICE/H', value: ({ hourlyUsd }) => formatPrice(hourlyUsd), dropOrder: 1 },
    { title: 'STATUS', value: ({ status }) => status, paint: (cell, { status }) => options.paint(toneOf(status), cell) },
    { title: 'LAST_JOB', value: ({ jobs }) => jobs, shrinksTo: 8 },
  ];
}
