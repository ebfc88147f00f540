import { expect, test } from 'vitest';
import { aControllerRecord, anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { placesOf } from '../../test/support/places.ts';
import { defaultConfig } from '../domain/config.ts';
import { FakePlace } from '../providers/fake/fake-place.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { Offer, PortableCredentials } from '../providers/provider.ts';
import { seededRandom } from '../shared/random.ts';
import { planController, planWhileHere } from './controller-plan.ts';

const offer = (change: Partial<Offer>): Offer =>
  anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 0.2, ...change });

/** A place that hands out keys. */
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
  const place = new FakePlace(clock, seededRandom(1), offers);
  return {
    place,
    deps: {
      places: placesOf(new KeyedProvider(place)),
      config: async () => defaultConfig,
      clock,
      signal: new AbortController().signal,
    },
  };
}

const anywhere = { order: 'any', choices: [someResources()] } as const;

const record = aControllerRecord({
  place: { provider: 'fake', region: 'r1', zone: null, instanceType: 'big', hourlyUsd: 0.9 },
  machineId: 'fake-1',
  program: 'abc',
  boot: 'cron',
  socket: '/s',
  publicHost: 'h',
  wished: '{"something":"else"}',
});

test('the next controller is the cheapest machine with four vCPUs, and what it would be given is told; nothing is asked for', async () => {
  const world = deps();
  expect(await planController(undefined, anywhere, world.deps)).toEqual({
    place: { provider: 'fake', region: 'r1', zone: null, instanceType: 'small' },
    hourlyUsd: 0.2,
    monthlyUsd: 146,
    isNew: true,
    given: ['keys of the profile lab'],
    note: null,
  });
  expect(world.place.machines.size).toBe(0);
});

test('one that exists adds nothing to the bill, and a changed configuration is said to hold for the next one', async () => {
  const plan = await planController(record, anywhere, deps().deps);
  expect(plan).toMatchObject({ isNew: false, given: [], place: { instanceType: 'big' } });
  expect(plan?.note).toContain('holds for the next controller');
});

test('where no place has a machine for it, the message says that it is for the controller, and how to have it here', async () => {
  const world = deps([offer({ instanceType: 'tiny', cpus: 2 })]);
  await expect(planController(undefined, anywhere, world.deps)).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: expect.stringMatching(/^No enabled place has a machine for the controller.*\n  fake: /),
    hint: expect.stringContaining('{infra: local}'),
  });
});

/** A configuration that asks for a controller at a place. */
const wanting = (cloud: string | undefined) => async () => {
  const controller = { ...defaultConfig.serve.controller, resources: { order: 'any', choices: [someResources({ cloud })] } as const };
  return { ...defaultConfig, serve: { controller } };
};

test('a configuration that wants the controller elsewhere while one runs here is said to hold for the next one', async () => {
  expect((await planWhileHere(wanting('ssh')))?.note).toContain('holds for the next controller');
  expect(await planWhileHere(wanting('local'))).toBeUndefined();
  expect(await planWhileHere(async () => defaultConfig)).toBeUndefined();
});
