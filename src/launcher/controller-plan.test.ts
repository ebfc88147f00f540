import { expect, test } from 'vitest';
import { aControllerRecord, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { providersOf } from '../../test/support/providers.ts';
import { defaultConfig } from '../domain/config.ts';
import { FakeCloud } from '../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { Offer, PortableCredentials } from '../providers/provider.ts';
import { seededRandom } from '../shared/random.ts';
import { planController, planWhileLocal } from './controller-plan.ts';

const offer = (change: Partial<Offer>): Offer =>
  anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 0.2, ...change });

/** A provider with credentials that it can copy. */
class KeyedProvider extends FakeProvider {
  credentials(): Promise<PortableCredentials> {
    return Promise.resolve({ summary: 'keys of the profile lab', files: [], environment: {} });
  }
}

const usual = [
  offer({ instanceType: 'tiny', cpus: 2, hourlyUsd: 0.05 }),
  offer({}),
  offer({ instanceType: 'big', cpus: 16, hourlyUsd: 0.9 }),
];

function deps(offers: readonly Offer[] = usual) {
  const clock = new FakeClock();
  const fakeProvider = new FakeCloud(clock, seededRandom(1), offers);
  return {
    fakeProvider,
    deps: {
      providers: providersOf(new KeyedProvider(fakeProvider)),
      config: async () => defaultConfig,
      clock,
      signal: new AbortController().signal,
    },
  };
}

const anywhere = { order: 'any', choices: [someResources()] } as const;

const record = aControllerRecord({
  machine: { provider: 'fake', region: 'r1', zone: null, instanceType: 'big', hourlyUsd: 0.9 },
  machineId: 'fake-1',
  program: 'abc',
  boot: 'cron',
  socket: '/s',
  publicHost: 'h',
  requestedResources: '{"something":"else"}',
});

test('a plan has the cheapest 4-vCPU machine and the copied credentials; nothing is created', async () => {
  const world = deps();
  expect(await planController(undefined, anywhere, world.deps)).toEqual({
    machine: { provider: 'fake', region: 'r1', zone: null, instanceType: 'small' },
    hourlyUsd: 0.2,
    monthlyUsd: 146,
    isNew: true,
    given: ['keys of the profile lab'],
    note: null,
  });
  expect(world.fakeProvider.machines.size).toBe(0);
});

test('an existing controller adds no cost; a changed configuration applies to the next one', async () => {
  const plan = await planController(record, anywhere, deps().deps);
  expect(plan).toMatchObject({ isNew: false, given: [], machine: { instanceType: 'big' } });
  expect(plan?.note).toContain('holds for the next controller');
});

test('without an offer, the error names the controller and the local alternative', async () => {
  const world = deps([offer({ instanceType: 'tiny', cpus: 2 })]);
  await expect(planController(undefined, anywhere, world.deps)).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: expect.stringMatching(/^No provider has a machine for the controller.*\(asked for: 4\+ CPUs\)\.\n  fake: /),
    hint: expect.stringContaining('{infra: local}'),
  });
});

/** A configuration that requests a controller at a provider. */
const requesting = (cloud: string | undefined) => async () => {
  const controller = { ...defaultConfig.serve.controller, resources: { order: 'any', choices: [someResources({ cloud })] } as const };
  return { ...defaultConfig, serve: { controller } };
};

test('with a local controller, a configured remote one applies to the next controller', async () => {
  expect((await planWhileLocal(requesting('ssh')))?.note).toContain('holds for the next controller');
  expect(await planWhileLocal(requesting('local'))).toBeUndefined();
  expect(await planWhileLocal(async () => defaultConfig)).toBeUndefined();
});
