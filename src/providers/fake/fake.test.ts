import { expect, test } from 'vitest';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { jobStatus, startJob, stopJob, watchJob } from '../../provision/job.ts';
import { seededRandom } from '../../shared/random.ts';
import { providerCases } from '../conformance.ts';
import type { Offer } from '../provider.ts';
import type { JobBehaviour } from './fake-machine.ts';
import { FakeCloud } from './fake-cloud.ts';
import { FakeProvider } from './index.ts';

const offer = (change: Partial<Offer> = {}): Offer => ({
  provider: 'fake',
  region: 'here',
  zone: undefined,
  instanceType: 'small',
  cpus: 4,
  memoryGb: 16,
  accelerator: undefined,
  spot: false,
  hourlyUsd: 0.2,
  ...change,
});

const spec = aMachineSpec();

function aCloud(clock = new FakeClock()): FakeCloud {
  return new FakeCloud(clock, seededRandom(1), [offer({ hourlyUsd: 0.3, instanceType: 'dear' }), offer()]);
}

async function aMachine(behaviour: JobBehaviour) {
  const clock = new FakeClock();
  const cloud = new FakeCloud(clock, seededRandom(1), [offer()]);
  cloud.conduct.jobOf = () => behaviour;
  const provider = new FakeProvider(cloud);
  const id = await provider.create(offer(), spec, 'key', {});
  const remote = provider.remote(id);
  const address = await remote.address(8080);
  const isServing = (): boolean => address.kind === 'tcp' && cloud.isServing(address.host);
  return { clock, cloud, provider, id, remote, isServing };
}

const job = { setup: 'prepare', run: 'serve', env: {}, workdir: '/w' };

test.for(providerCases)('fake: $name', async ({ run }) => {
  const cloud = aCloud();
  const fixture = {
    provider: new FakeProvider(cloud),
    other: new FakeProvider(cloud),
    resources: someResources(),
    async refuse() {
      cloud.conduct.capacity = 0;
      await Promise.resolve();
    },
    async preemptAll() {
      for (const { id } of cloud.living) cloud.preempt(id);
      await Promise.resolve();
    },
    untilRunning: () => Promise.resolve(),
  };
  await expect(run(fixture)).resolves.toBeUndefined();
});

test('a machine boots after its boot time, and calls take their duration', async () => {
  const clock = new FakeClock();
  const cloud = aCloud(clock);
  Object.assign(cloud.conduct, { callMs: 100, bootMs: 5_000 });
  const provider = new FakeProvider(cloud);
  const creating = provider.create(offer(), spec, 'key', {});
  await clock.advance(100);
  const id = await creating;
  const stateNow = async () => {
    const asking = provider.inspect([id], {});
    await clock.advance(100);
    return (await asking).get(id);
  };
  expect(await stateNow()).toEqual({ state: 'booting' });
  await clock.advance(5_000);
  expect(await stateNow()).toEqual({ state: 'running' });
});

test('after a lost reply, a create with the same key finds the machine', async () => {
  const cloud = aCloud();
  const provider = new FakeProvider(cloud);
  cloud.conduct.lostReplies = 1;
  await expect(provider.create(offer(), spec, 'key', {})).rejects.toMatchObject({ kind: 'transient' });
  cloud.conduct.lostReplies = 0;
  const [machine] = cloud.living;
  expect(await provider.create(offer(), spec, 'key', {})).toBe(machine?.id);
  expect(cloud.machines.size).toBe(1);
});

test('a job goes through its phases over time and serves when ready', async () => {
  const { clock, remote, isServing } = await aMachine({ setupMs: 1_000, readyAfterMs: 2_000, runMs: 10_000, exitCode: 3 });
  const phases: string[] = [];
  const watching = (async () => {
    for await (const status of watchJob(remote, 'main', new AbortController().signal, { clock })) phases.push(status.phase);
  })();
  await startJob(remote, 'main', job);
  await clock.advance(1_500);
  expect([phases.at(-1), isServing()]).toEqual(['run', false]);
  await clock.advance(2_000);
  expect(isServing()).toBe(true);
  await clock.advance(10_000);
  await watching;
  expect([phases.filter((phase) => phase !== 'absent'), isServing()]).toEqual([['setup', 'run', 'ended'], false]);
  expect(await jobStatus(remote, 'main')).toMatchObject({ phase: 'ended', exitCode: 3, failedPhase: 'run' });
});

test('a setup can fail, and a program can be killed, stopped or lost', async () => {
  const failing = await aMachine({ setupMs: 1_000, setupExitCode: 2 });
  await startJob(failing.remote, 'main', job);
  await failing.clock.advance(1_000);
  expect(await jobStatus(failing.remote, 'main')).toMatchObject({ phase: 'ended', exitCode: 2, failedPhase: 'setup' });

  const killed = await aMachine({});
  await startJob(killed.remote, 'main', { run: 'serve', env: {}, workdir: '/w' });
  killed.cloud.machines.get(killed.id)?.killProgram();
  expect(await jobStatus(killed.remote, 'main')).toMatchObject({ phase: 'ended', signal: 'SIGKILL' });

  const stopped = await aMachine({ stopMs: 500 });
  await startJob(stopped.remote, 'main', { run: 'serve', env: {}, workdir: '/w' });
  const stopping = stopJob(stopped.remote, 'main', { graceMs: 1_000 });
  await stopped.clock.advance(500);
  await stopping;
  expect(await jobStatus(stopped.remote, 'main')).toMatchObject({ phase: 'ended', signal: 'SIGTERM' });

  const lost = await aMachine({});
  await startJob(lost.remote, 'main', { run: 'serve', env: {}, workdir: '/w' });
  lost.cloud.machines.get(lost.id)?.loseProcesses();
  expect(await jobStatus(lost.remote, 'main')).toMatchObject({ phase: 'lost' });
});

test('a gone machine is unreachable', async () => {
  const { cloud, id, remote, isServing } = await aMachine({});
  await startJob(remote, 'main', { run: 'serve', env: {}, workdir: '/w' });
  expect(isServing()).toBe(true);
  cloud.preempt(id);
  expect(isServing()).toBe(false);
  await expect(remote.readFile('/x')).rejects.toMatchObject({ code: 'SVC_MACHINE_LOST' });
});
