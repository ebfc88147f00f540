import { readFileSync } from 'node:fs';

/** Listening sockets, logs, pipes and idle connections to replicas. */
const reserve = 512;

/** How many requests at a time a proxy can carry, which needs two open files for each, where each process may open as many files as this one. */
export function streamCapacity(): number {
  const [, soft = '', hard = ''] =
    /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const limit = Math.min(...[soft, hard].map((text) => (text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text))));
  return Math.floor((limit - reserve) / 2);
}
