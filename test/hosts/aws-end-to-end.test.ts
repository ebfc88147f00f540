import { expect, test } from 'vitest';
import type { ReplicaView } from '../../src/api/contract.ts';
import { tally, Traffic } from '../support/traffic.ts';
import { report } from '../support/figures.ts';
import { waitFor } from '../support/wait-for.ts';
import { configure, describeCloud, instanceOf, nothingLeft, regions, webFiles, withCloud, type CloudWorld } from './cloud-world.ts';

/** AWS's notice period, ms. */
const noticeMs = 120_000;

const seconds = (from: string, to: string | null): string => ((Date.parse(to ?? '') - Date.parse(from)) / 1_000).toFixed(1);

/** Limits capacity to four machines, of which us-east-2 has two. */
function fillUp({ aws }: CloudWorld): () => void {
  // The first launch is refused, so that a refusal occurs whatever the order of launches.
  aws.conduct.refuse({ action: 'RunInstances', region: 'us-east-1', times: 1 }, 'InsufficientInstanceCapacity');
  const limits = Object.keys(regions).map((region) => aws.control.supply.limitCapacity({ region }, region === 'us-east-2' ? 2 : 1));
  return () => limits.forEach((lift) => lift());
}

/** Counts the requests that each replica answered. */
async function answersBy(endpoint: string, requests: number): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  const ask = async (): Promise<void> => {
    const name = (await (await fetch(endpoint)).text()).trim();
    counts[name] = (counts[name] ?? 0) + 1;
  };
  for (let sent = 0; sent < requests; sent += 10) await Promise.all(Array.from({ length: 10 }, ask));
  return counts;
}

/** AWS announces that it reclaims a replica's machine: the replacement must be ready first, and no request may fail. */
async function interrupt(world: CloudWorld, replica: ReplicaView, endpoint: string): Promise<void> {
  const { svc, aws } = world;
  const traffic = new Traffic(endpoint);
  const stop = traffic.begin(4, 5, () => ({}));
  const { id } = instanceOf(world, replica);
  const before = await svc.service('web');
  const at = Date.now();
  aws.control.interrupt(id);
  const replaced = async () => {
    const now = await svc.service('web');
    const isGone = now.replicas.every((one) => one.id !== replica.id || one.endedAt !== null);
    const fresh = now.replicas.find((one) => one.status === 'READY' && before.replicas.every((known) => known.id !== one.id));
    return isGone && fresh !== undefined && now.replicasReady === before.replicasReady && { now, fresh };
  };
  const { fresh } = await waitFor('its replacement', replaced, {
    everyMs: 500,
    describe: () => svc.service('web'),
  });
  const outcomes = await stop();
  traffic.close();
  report(
    `notice: replaced after ${seconds(new Date(at).toISOString(), fresh.readyAt)} s of ${noticeMs / 1_000}, ${JSON.stringify(tally(outcomes))}`,
  );
  expect(Object.keys(tally(outcomes))).toEqual(['GET 200']);
}

describeCloud('AWS, end to end', () => {
  test('replicas in three regions: planned, placed, balanced, replaced after a notice, removed completely', async () => {
    await withCloud({ timing: { noticeMs } }, async (world) => {
      const { svc, aws, instances } = world;
      configure(svc, 'serve:\n  controller:\n    resources:\n      infra: local\n');
      const anyRegion = Object.keys(regions).map((region) => `    - infra: aws/${region}`);
      // Without on-demand replicas, which the default policy would add.
      const policy = ['  replica_policy: {min_replicas: 4, spot_placer: dynamic_fallback}'];
      const file = webFiles(svc, policy, ['  cpus: 2', '  use_spot: true', '  any_of:', ...anyRegion]);
      expect(await svc.ok(['check', 'aws'])).toContain('aws: enabled');
      const plan = await svc.ok(['serve', 'plan', file]);
      for (const region of Object.keys(regions)) expect(plan).toMatch(new RegExp(`^[1-4].*aws/${region} `, 'm'));

      const lift = fillUp(world);
      await svc.ok(['serve', 'up', file, '-n', 'web', '--yes']);
      const { endpoint, replicas } = await svc.ready('web', 4);
      for (const one of replicas) report(`${one.region}: ready ${seconds(one.createdAt, one.readyAt)} s after it was requested`);
      expect(replicas.map(({ region }) => String(region)).toSorted()).toEqual(['us-east-1', 'us-east-2', 'us-east-2', 'us-west-2']);
      expect(new Set(replicas.map((one) => instanceOf(world, one).host.ip)).size).toBe(4);
      expect(await svc.ok(['serve', 'explain', 'web'])).toMatch(/us-east-1.*InsufficientInstanceCapacity|us-east-1 refused/);
      lift();

      const counts = await answersBy(endpoint, 200);
      report(`answers: ${JSON.stringify(counts)}`);
      expect(Object.keys(counts).toSorted()).toEqual(replicas.map(({ id }) => `replica ${id}`).toSorted());
      const fetched = aws.calls.filter(({ service, action }) => service === 's3' && action === 'GetObject').length;
      expect(fetched).toBeGreaterThanOrEqual(4);

      const [first] = replicas;
      if (first === undefined) throw new Error('there is a replica');
      await interrupt(world, first, endpoint);

      await svc.ok(['serve', 'down', 'web', '--yes']);
      await waitFor('the service to be gone', async () => (await svc.services()).length === 0, {
        describe: svc.services,
      });
      nothingLeft(world);
      expect(instances.machines.size).toBe(0);
      await svc.end();
    });
  });
});
