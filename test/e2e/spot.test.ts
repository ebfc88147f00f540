import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { waitFor } from '../support/wait-for.ts';

interface Zone {
  readonly room: number;
  readonly noticeSeconds?: number;
}

/** Sets the spot zones of this machine. Zone `a` is the cheapest. */
function setZones(svc: Svc, zones: Readonly<Record<'a' | 'b' | 'c', Zone>>): void {
  const lines = Object.entries(zones).map(([name, { room, noticeSeconds = 0 }], index) => {
    return `    - {name: ${name}, room: ${room}, hourly_price: ${0.3 + index / 100}, reclaim_after_seconds: ${noticeSeconds}}\n`;
  });
  writeFileSync(join(svc.home, 'config.yaml'), `local:\n  hourly_price: 1\n  spot_zones:\n${lines.join('')}`);
}

/**
 * Zones of the ready spot replicas; without any, `on-demand` for each other one. Beside spot replicas in zones that
 * changed lately, an on-demand replica may stay for a while.
 */
async function readyZones(svc: Svc): Promise<string> {
  const ready = (await svc.service('web')).replicas.filter(({ status }) => status === 'READY');
  const zones = ready.flatMap(({ spot, zone }) => (spot ? [String(zone)] : []));
  return zones.length > 0 ? zones.toSorted().join() : ready.map(() => 'on-demand').join();
}

async function untilZones(svc: Svc, zones: string): Promise<void> {
  await waitFor(`ready replicas in ${zones}`, async () => (await readyZones(svc)) === zones, {
    timeoutMs: 90_000,
    everyMs: 300,
    describe: () => svc.service('web'),
  });
}

/** Sends requests, several at a time, until the work is done. Returns the number of answers by status. */
async function requestsDuring(endpoint: string, work: () => Promise<void>): Promise<ReadonlyMap<number | string, number>> {
  const answers = new Map<number | string, number>();
  const done = new AbortController();
  const client = async (): Promise<void> => {
    while (!done.signal.aborted) {
      const status = await fetch(`${endpoint}/work`).then(
        async (reply) => (await reply.text(), reply.status),
        (error: unknown) => String(error),
      );
      answers.set(status, (answers.get(status) ?? 0) + 1);
    }
  };
  const clients = Array.from({ length: 6 }, client);
  try {
    await work();
  } finally {
    done.abort();
    await Promise.all(clients);
  }
  return answers;
}

test('spot replicas leave a zone with a notice, or a full zone without one, and on-demand replicas bridge the time', async () => {
  await withSvc(async (svc) => {
    setZones(svc, { a: { room: 2 }, b: { room: 2 }, c: { room: 2 } });
    const plan = await svc.ok(['serve', 'plan', 'examples/spot/service.yaml']);
    expect(plan).toContain('2 replicas: 0.61 $/h');
    expect(plan).toContain('While no spot replica is ready: 2 on-demand replicas, 2.00 $/h.');
    await svc.ok(['serve', 'up', 'examples/spot/service.yaml', '-n', 'web', '-y']);
    const { endpoint } = await svc.ready('web', 2);
    await untilZones(svc, 'a,b');

    const noticed = await requestsDuring(endpoint, async () => {
      setZones(svc, { a: { room: 0, noticeSeconds: 30 }, b: { room: 2 }, c: { room: 2 } });
      await untilZones(svc, 'b,c');
      await waitFor('the drained replica to be gone', async () => (await svc.events('web')).some(({ to }) => to === 'TERMINATED'));
    });
    expect([...noticed.keys()]).toEqual([200]);
    const events = await svc.events('web');
    expect(events.map(({ cause }) => cause)).toContain('interruption-notice');
    const requested = events.filter(({ cause }) => cause === 'replica-requested');
    expect(requested.map(({ message }) => message)).toContainEqual(expect.stringContaining('spot and 1 on demand'));

    // Without notice: the machine of zone b is gone, and its requests may fail. All zones are full now.
    setZones(svc, { a: { room: 0 }, b: { room: 0 }, c: { room: 0 } });
    await untilZones(svc, 'on-demand,on-demand');
    const lost = (await svc.events('web')).filter(({ to }) => to === 'SHUTTING_DOWN').map(({ cause }) => cause);
    expect([lost.filter((cause) => cause === 'preempted').length, lost.includes('program-failed')]).toEqual([2, false]);
    expect((await fetch(endpoint)).status).toBe(200);

    // The controller ends in the middle; the launches that wait keep their market.
    await svc.ok(['controller', 'stop', '--keep-services']);
    const back = await requestsDuring(endpoint, async () => {
      setZones(svc, { a: { room: 1 }, b: { room: 0 }, c: { room: 1 } });
      await svc.ok(['serve', 'retry', 'web']);
      await untilZones(svc, 'a,c');
    });
    expect([...back.keys()]).toEqual([200]);
    await svc.end();
  });
});
