import { expect, test } from 'vitest';
import { someResources } from '../../test/support/builders.ts';
import type { Resources } from '../domain/task.ts';
import type { Offer, OfferList, Provider } from '../providers/provider.ts';
import { collectOffers, describeOffer } from './offers.ts';

const anOffer = (changes: Partial<Offer> = {}): Offer => ({
  provider: 'stub',
  region: 'here',
  zone: undefined,
  instanceType: 'host',
  cpus: 4,
  memoryGb: 15.6,
  accelerator: undefined,
  spot: false,
  hourlyUsd: 1,
  ...changes,
});

const notUsed = (): never => {
  throw new Error('not used here');
};

const aPlace = (name: string, answer: (resources: Resources) => OfferList): Provider => ({
  name,
  capabilities: { spot: false, stopResume: false, customImages: false, openPorts: false, multiNode: false, gpus: false },
  check: notUsed,
  offers: async (resources) => answer(resources),
  create: notUsed,
  inspect: notUsed,
  destroy: notUsed,
  list: notUsed,
  remote: notUsed,
  stop: notUsed,
  start: notUsed,
  release: notUsed,
});

const gives = (...offers: Offer[]) => aPlace('stub', () => ({ offers, whyNone: undefined }));
const nothing = (name: string, whyNone: string) => aPlace(name, () => ({ offers: [], whyNone }));

test('alternatives without an order are one group, ordered ones keep theirs', async () => {
  const choices = [someResources({ region: 'a' }), someResources({ region: 'b' })];
  const place = aPlace('stub', ({ region }) => ({ offers: [anOffer({ region: region ?? '' })], whyNone: undefined }));
  const regions = async (order: 'any' | 'ordered') =>
    (await collectOffers({ order, choices }, [place])).map(({ offers }) => offers.map(({ region }) => region));
  expect(await regions('any')).toEqual([['a', 'b']]);
  expect(await regions('ordered')).toEqual([['a'], ['b']]);
});

test('only the named cloud is asked', async () => {
  const other = aPlace('other', notUsed);
  const [group] = await collectOffers({ order: 'any', choices: [someResources({ cloud: 'stub' })] }, [gives(anOffer()), other]);
  expect(group?.offers).toHaveLength(1);
});

test('what costs more than max_hourly_cost is no offer, and the refusal says so', async () => {
  const choices = [someResources({ maxHourlyCost: 0.5 })];
  await expect(collectOffers({ order: 'any', choices }, [gives(anOffer())])).rejects.toThrow(
    /costs more than max_hourly_cost \(0\.5 \$\/h\)/,
  );
});

test('without any offer every place gives its reason', async () => {
  const places = [nothing('one', 'It has 2 vCPUs.'), nothing('two', 'It is full.')];
  const found = collectOffers({ order: 'any', choices: [someResources()] }, places);
  await expect(found).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: expect.stringMatching(/one: It has 2 vCPUs\.\n.*two: It is full\./),
  });
});

test('a cloud that is not enabled is named, with those that are', async () => {
  const found = collectOffers({ order: 'any', choices: [someResources({ cloud: 'aws' })] }, [gives(anOffer())]);
  await expect(found).rejects.toThrow('aws: not an enabled place (enabled: stub).');
});

test('GPUs that nobody has are an error of their own', async () => {
  const choices = [someResources({ accelerator: { name: 'H100', count: 8 } })];
  await expect(collectOffers({ order: 'any', choices }, [nothing('local', 'It has no GPU.')])).rejects.toMatchObject({
    code: 'SVC_NO_GPU',
  });
});

test('an offer in a few words', () => {
  expect(describeOffer(anOffer())).toBe('1x(cpus=4, mem=16)');
  expect(describeOffer(anOffer({ accelerator: { name: 'L4', count: 2 }, spot: true }))).toBe('1x(cpus=4, mem=16, L4:2)[spot]');
});
