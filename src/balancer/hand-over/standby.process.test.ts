import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ControlLink, withBalancer, type RunningBalancer } from '../../../test/support/balancer.ts';
import { groupOf } from '../../../test/support/leaks.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

/** Waits for the report of a standby other than the given ones; returns its pid. */
const standbyOf = ({ link }: RunningBalancer, ...former: readonly number[]): Promise<number> =>
  waitFor('a standby', () => {
    const pids = [link.of('hello')[0]?.standby, ...link.of('standby').map(({ pid }) => pid)];
    return pids.findLast((pid) => pid !== undefined && !former.includes(pid));
  });

/** Tries again until the next balancer listens: it answers requests before that. */
const helloOf = (controlSocket: string) =>
  waitFor('the hello of the next balancer', async () => {
    const link = new ControlLink(controlSocket);
    try {
      const hello = await waitFor('a hello or an end', () => link.isClosed || link.of('hello')[0], { everyMs: 5 });
      return hello !== true && hello;
    } finally {
      link.close();
    }
  });

test('a standby becomes the next balancer with the same pid, and has a standby of its own', async () => {
  await withBalancer([], async (balancer) => {
    const standby = await standbyOf(balancer);
    balancer.signal('SIGKILL');
    expect((await fetch(balancer.url)).status).toBe(503);
    const hello = await helloOf(balancer.config.controlSocket);
    expect([hello.pid, hello.standby === undefined]).toEqual([standby, false]);
  });
});

test('a killed standby is replaced and reported, and the balancer serves on', async () => {
  await withBalancer([], async (balancer) => {
    const first = await standbyOf(balancer);
    process.kill(first, 'SIGKILL');
    expect(await standbyOf(balancer, first)).not.toBe(first);
    expect((await fetch(balancer.url)).status).toBe(503);
  });
});

test('a balancer that ends as intended leaves no standby', async () => {
  await withBalancer([], async (balancer) => {
    await standbyOf(balancer);
    balancer.signal('SIGTERM');
    expect(await balancer.exited).toBe(0);
    // A killed process may take a moment to end.
    await waitFor('the standby to be gone', () => groupOf(balancer.pid).length === 0, { describe: () => groupOf(balancer.pid) });
  });
});

test('a balancer that could not hand over has a standby again', async () => {
  await withBalancer([], async (balancer) => {
    const first = await standbyOf(balancer);
    writeFileSync(join(balancer.config.controlSocket, '..', 'balancer.json'), '{');
    balancer.link.send('{"type":"hand-over"}');
    expect(await standbyOf(balancer, first)).not.toBe(first);
  });
});
