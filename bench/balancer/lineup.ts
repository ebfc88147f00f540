import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant, ProxyOptions, RunningProxy } from './contestant.ts';

/** A contestant that serves. */
export interface Entry {
  readonly name: string;
  readonly proxy: RunningProxy;
}

/** Starts the contestants, each in a folder of its own, runs `use` and ends them, whatever happened. */
export async function withLineup<Result>(
  contestants: readonly Contestant[],
  options: ProxyOptions,
  use: (entries: readonly Entry[]) => Promise<Result>,
): Promise<Result> {
  const entries: Entry[] = [];
  try {
    for (const contestant of contestants) {
      const dir = join(options.dir, contestant.name);
      mkdirSync(dir, { recursive: true });
      entries.push({ name: contestant.name, proxy: await contestant.start({ ...options, dir }) });
    }
    return await use(entries);
  } finally {
    await Promise.all(entries.map(({ proxy }) => proxy.stop()));
  }
}

/**
 * Measures each entry once a round. Who comes first changes with each round, as what runs after a pause may be at an advantage.
 * Resolves with a value for each round, by name.
 */
export async function inRounds<Value>(
  entries: readonly Entry[],
  rounds: number,
  measure: (entry: Entry) => Promise<Value>,
): Promise<ReadonlyMap<string, readonly Value[]>> {
  const values = new Map<string, Value[]>(entries.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    const shift = round % entries.length;
    for (const entry of [...entries.slice(shift), ...entries.slice(0, shift)]) values.get(entry.name)?.push(await measure(entry));
  }
  return values;
}
