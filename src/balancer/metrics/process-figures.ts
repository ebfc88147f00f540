import { readdirSync } from 'node:fs';
import { openFilesLimit } from '../threads/connection-limit.ts';
import type { Samples } from './samples.ts';

const microsecondsPerSecond = 1_000_000;
const msPerSecond = 1_000;

/** Tells what the whole process uses, all its threads together. `startedAt`: wall time, ms. */
export function readProcessFigures(samples: Samples, startedAt: number): void {
  const { user, system } = process.cpuUsage();
  samples.add('processCpu', (user + system) / microsecondsPerSecond);
  samples.add('processMemory', process.memoryUsage.rss());
  samples.add('processStart', startedAt / msPerSecond);
  const openFiles = countOpenFiles();
  if (openFiles !== undefined) samples.add('processOpenFiles', openFiles);
  samples.add('processMaxFiles', openFilesLimit());
}

function countOpenFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    // Not Linux: the figure is left out.
    return undefined;
  }
}
