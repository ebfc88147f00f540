import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Contestant, ProxyOptions, RunningProxy } from './contestant.ts';

/** A contestant that is ready to serve. */
export interface Entry {
  readonly name: string;
  readonly proxy: RunningProxy;
}

/** Starts each contestant in its own folder, runs `use`, and ends all contestants even after an error. */
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
 * Measures each entry once per round. The first entry changes with each round, because a run after a pause may have an
 * advantage. Resolves with one value per round, by name.
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
