import type { Accelerator } from './task.ts';

/** Requests per second for each kind of accelerator: `NAME` or `NAME:COUNT`, as the file writes them. */
export type AcceleratorTargets = Readonly<Record<string, number>>;

/** Case, the separators in a name, and the maker before it do not count: `NVIDIA RTX 4090` is `RTX_4090` and `rtx-4090`. */
function canonical(name: string): string {
  return name
    .toLowerCase()
    .replace(/^(?:nvidia|amd|intel|google)[-_ ]+/, '')
    .replaceAll(/[-_ ]/g, '');
}

/** The target for a machine with these accelerators: the entry with its count before the one with the name alone. Undefined when there is none. */
export function targetOf(targets: AcceleratorTargets, accelerator: Accelerator | undefined): number | undefined {
  if (accelerator === undefined) return undefined;
  const name = canonical(accelerator.name);
  const entries = Object.entries(targets).map(([key, qps]) => {
    const [kind = '', count] = key.split(':');
    return { name: canonical(kind), count: count === undefined ? undefined : Number(count), qps };
  });
  const ofName = entries.filter((entry) => entry.name === name);
  return (ofName.find(({ count }) => count === accelerator.count) ?? ofName.find(({ count }) => count === undefined))?.qps;
}

/** What a machine counts for whose accelerators have no entry: as little as the weakest that has one, so that nothing is overloaded. */
export function smallestTarget(targets: AcceleratorTargets): number {
  return Math.min(...Object.values(targets));
}
