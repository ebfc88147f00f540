import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { seededRandom, type Random } from '../../src/shared/random.ts';
import { daemonOf, killHard, reconcilersOf } from '../support/processes.ts';
import { report } from '../support/figures.ts';
import { waitFor } from '../support/wait-for.ts';
import { configure, describeCloud, nothingLeft, webFiles, withCloud, type CloudWorld } from './cloud-world.ts';

/** Number of deployments and terminations of the service, with the controller killed five times each. */
const lives = 4;

/** The next kill comes after this time without a step, ms. */
const quietMs = 12_000;

const readings = /^(Describe|List|Head|GetCaller|GetParameters|GetServiceQuota)/;

/**
 * Steps so far: calls to AWS by the controller, and files fetched by machines. Each is a step of launch or teardown.
 */
const steps = ({ aws }: CloudWorld): readonly string[] =>
  aws.calls.flatMap(({ action, outcome }) => (readings.test(action) || outcome !== 'ok' ? [] : [action]));

/**
 * Counts the machines of each replica. The emulator refuses nothing here, so a second machine of a replica is a bug.
 */
function machinesByReplica({ aws }: CloudWorld): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind, tags } of aws.control.leftovers()) {
    if (kind !== 'instance') continue;
    const replica = `${tags['svc-service-key']}/${tags['svc-replica']}`;
    counts[replica] = (counts[replica] ?? 0) + 1;
  }
  return counts;
}

/** Continuously checks for replicas with two machines. */
function watchForDuplicates(world: CloudWorld): { readonly found: ReadonlySet<string>; readonly stop: () => void } {
  const found = new Set<string>();
  const check = (): void => {
    for (const [replica, count] of Object.entries(machinesByReplica(world))) if (count > 1) found.add(replica);
  };
  const timer = setInterval(check, 25);
  return { found, stop: () => clearInterval(timer) };
}

/** Kills daemon and reconciler after some ms, and lets a command recover them. */
async function kill({ svc }: CloudWorld, afterMs: number): Promise<void> {
  await sleep(afterMs);
  killHard([...daemonOf(svc.home), ...reconcilersOf(svc.home)]);
  await svc.services();
}

/** Kills them after some steps and some ms, chosen by the seed; `most`: maximum number of steps. */
async function killAtStep(world: CloudWorld, random: Random, most: number): Promise<string> {
  const before = steps(world).length;
  const target = before + 1 + Math.floor(random() * most);
  const quietAt = Date.now() + quietMs;
  await waitFor('the step', () => steps(world).length >= target || Date.now() > quietAt, { everyMs: 2 });
  // Most steps follow each other closely, but some take seconds.
  const delayMs = random() < 0.5 ? 0 : Math.floor(random() * 2_000);
  const last = steps(world).at(-1);
  await kill(world, delayMs);
  return `${target - before} steps and ${delayMs} ms later, after ${last}`;
}

/** Deploys and terminates the service, and kills the controller five times on the way. */
async function live(world: CloudWorld, file: string, random: Random): Promise<readonly string[]> {
  const { svc } = world;
  const upCommand = ['serve', 'up', file, '-n', 'web', '--yes'];
  const deployment = svc.run(upCommand);
  const delayMs = 1_500 + Math.floor(random() * 2_500);
  await kill(world, delayMs);
  const points = [`${delayMs} ms after \`up\` began`];
  await deployment;
  // A controller killed early has not recorded the service: the user repeats the command.
  if ((await svc.services()).length === 0) await svc.ok(upCommand);
  for (let kills = 0; kills < 2; kills += 1) points.push(await killAtStep(world, random, 5));
  const { endpoint } = await svc.ready('web', 2);
  expect((await fetch(endpoint)).status).toBe(200);
  expect(Object.values(machinesByReplica(world))).toEqual([1, 1]);

  const taking = svc.run(['serve', 'down', 'web', '--yes']);
  for (let kills = 0; kills < 2; kills += 1) points.push(await killAtStep(world, random, 2));
  await taking;
  if ((await svc.services()).some(({ status }) => status !== 'SHUTTING_DOWN')) await svc.ok(['serve', 'down', 'web', '--yes']);
  await waitFor('the service to be gone', async () => (await svc.services()).length === 0, { describe: svc.services });
  nothingLeft(world);
  return points;
}

describeCloud('the controller killed', () => {
  test('at twenty points of launch and teardown: no machine lost, none made twice', async () => {
    await withCloud({}, async (world) => {
      const { svc, aws, instances } = world;
      configure(svc, 'serve:\n  controller:\n    resources:\n      infra: local\n');
      const file = webFiles(svc, 2, ['  cpus: 2', '  infra: aws/us-east-1']);
      const random = seededRandom(20);
      const duplicates = watchForDuplicates(world);
      const points: string[] = [];
      try {
        for (let life = 0; life < lives; life += 1) points.push(...(await live(world, file, random)));
      } finally {
        duplicates.stop();
        report(points.join('\n'));
      }
      expect(points).toHaveLength(20);
      expect([...duplicates.found]).toEqual([]);
      report(`machines made: ${aws.control.instances.length}`);
      expect(instances.machines.size).toBe(0);
      await svc.end();
    });
  }, 1_800_000);
});
