import { canonicalAccelerator, isSameAccelerator, nearestAccelerators } from '../domain/accelerators.ts';
import { isGpuNamed } from '../domain/gpus.ts';
import type { Resources } from '../domain/task.ts';
import type { PlaceState } from './places.ts';

/** Who may know an accelerator that svc itself has never heard of. */
export interface AcceleratorSources {
  /** What their checks found: a label of a node, or a driver, may carry any name. */
  readonly places: readonly Pick<PlaceState, 'check'>[];
  /** Names in tables of prices. */
  readonly tables: readonly string[];
}

/** An accelerator that nobody knows, with the names that are nearest to it. */
export interface UnknownAccelerator {
  readonly name: string;
  readonly nearest: readonly string[];
}

/** The accelerators that alternatives ask for, and that neither svc nor any place or table knows; each once. */
export function unknownAccelerators(
  choices: readonly Pick<Resources, 'accelerator'>[],
  sources: AcceleratorSources,
): readonly UnknownAccelerator[] {
  const names = [...new Set(choices.flatMap(({ accelerator }) => accelerator?.name ?? []))];
  return names.filter((name) => !isKnown(name, sources)).map((name) => ({ name, nearest: nearestAccelerators(name, sources.tables) }));
}

function isKnown(name: string, { places, tables }: AcceleratorSources): boolean {
  if (canonicalAccelerator(name) !== undefined || tables.some((one) => isSameAccelerator(one, name))) return true;
  const found = places.flatMap(({ check }) => check.details.map(([, text]) => text));
  return found.some((text) => isGpuNamed({ index: 0, name: text, memoryGb: undefined }, name));
}

/** A sentence, or two, for each. */
export function describeUnknown({ name, nearest }: UnknownAccelerator): string {
  const meant = nearest.length === 0 ? '' : ` Did you mean ${nearest.join(' or ')}?`;
  return `No place says that it has an accelerator '${name}', and svc knows none of that name.${meant}`;
}
