import { z } from 'zod';
import { bytesPerGb, parseSize } from '../../shared/units.ts';
import type { Amount } from '../../domain/task.ts';
import { reading, type Reading } from './kit.ts';

const cpuHelp = 'must be a number greater than 0, or such a number with + for "at least"\nWrite for instance: cpus: 4 or cpus: 4+';

/** `4`, `"4"`, `4+`, `4.5`: virtual CPUs. */
export const cpuAmount = reading(z.union([z.number(), z.string()]), (value): Reading<Amount> => {
  const match = /^(\d{1,9}(?:\.\d{1,6})?)(\+?)$/.exec(String(value).trim());
  const amount = Number(match?.[1]);
  return match !== null && amount > 0 ? { ok: { value: amount, atLeast: match[2] === '+' } } : { problem: cpuHelp };
});

/** Memory, GB; or so many GB for each CPU (`2x`). */
export type MemoryAmount = Amount & { readonly perCpu: boolean };

const memoryHelp =
  'must be a size greater than 0, or such a size with + for "at least"\nWrite for instance: memory: 16, memory: 16+ or memory: 512MB';

const binaryUnit = 'the unit is not known\nWrite GB instead of GiB; a GB counts 1024 MB here.';

/** `16`, `16+`, `16GB`, `1tb`, `2x`. */
export const memoryAmount = reading(z.union([z.number(), z.string()]), (value): Reading<MemoryAmount> => {
  const text = String(value).trim();
  const atLeast = text.endsWith('+');
  const perCpu = /\dx$/.test(text);
  const bytes = parseSize(atLeast || perCpu ? text.slice(0, -1) : text, 'GB');
  if (bytes === undefined || bytes <= 0) return { problem: /\d ?[kmgtp]ib?\+?$/i.test(text) ? binaryUnit : memoryHelp };
  return { ok: { value: bytes / bytesPerGb, atLeast, perCpu } };
});

const diskHelp = 'must be a size greater than 0\nWrite GB, or for instance 100GB or 1TB.';

/** `256`, `"256"`, `256GB`, `1TB`: whole GB. */
export const diskSize = reading(z.union([z.number(), z.string()]), (value): Reading<number> => {
  const bytes = parseSize(String(value), 'GB');
  return bytes === undefined || bytes <= 0 ? { problem: diskHelp } : { ok: Math.ceil(bytes / bytesPerGb) };
});
