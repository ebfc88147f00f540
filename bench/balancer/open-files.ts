import { readFileSync } from 'node:fs';

/** For listening sockets, logs, pipes and idle connections to replicas. */
const reserve = 512;

/**
 * How many concurrent requests a proxy can carry. Each needs two open files, and the proxy has the same limit as this
 * process.
 */
export function streamCapacity(): number {
  const [, soft = '', hard = ''] =
    /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const limit = Math.min(...[soft, hard].map((text) => (text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text))));
  return Math.floor((limit - reserve) / 2);
}
