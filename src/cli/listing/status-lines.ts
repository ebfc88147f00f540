import type { DiskView, LeftoverView } from '../../api/contract.ts';
import { oneLine } from './display-text.ts';
import type { ListingOptions } from './service-listing.ts';

/** One line about the resources of a service or cluster that the state database does not know. */
export function describeLeftover({ kind, key, name, port, balancerPid, machines, unasked }: LeftoverView): string {
  const balancer = balancerPid === null ? 'no balancer runs; ' : `its balancer (process ${balancerPid}) serves port ${port ?? '?'}; `;
  const counts = [...Map.groupBy(machines, ({ provider }) => provider)].map(([provider, { length }]) => `${length} at ${provider}`);
  const running = machines.length === 0 ? 'no machines were found' : `machines: ${counts.join(', ')}`;
  const silent = unasked.map(({ provider, reason }) => `; could not ask ${provider} for machines: ${reason}`);
  const title = name === null ? `A ${kind}` : `${kind === 'cluster' ? 'Cluster' : 'Service'} '${name}'`;
  return oneLine(`${title} (${key}): ${kind === 'cluster' ? '' : balancer}${running}${silent.join('')}`);
}

/**
 * Lines that `svc status` and `svc serve status` print below the services. Empty when the state database knows all
 * existing resources.
 */
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

/**
 * Lines that `svc status` and `svc serve status` print below the services when the disk of SVC_HOME is full or nearly
 * full. Otherwise empty.
 */
export function diskLines(disk: DiskView | undefined, { paint, asTyped }: Pick<ListingOptions, 'paint' | 'asTyped'>): readonly string[] {
  if (disk === undefined) return [];
  const { folder, freeBytes, freeInodes } = disk;
  const inodes = freeInodes === null ? '' : ` and ${freeInodes} inodes`;
  const free = `${Math.floor(freeBytes / mebibyte)} MiB${inodes} are free`;
  const remedy = asTyped('Free space there, or run: svc serve down NAME');
  return ['', paint('bad', `The disk of ${folder} is full or nearly full: ${free}. ${remedy}`)];
}
