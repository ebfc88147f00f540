import { expect, test } from 'vitest';
import { anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledProvider, statesOf } from '../../test/support/providers.ts';
import { aStubProvider } from '../../test/support/stub-provider.ts';
import type { ResourceAlternatives, Resources } from '../domain/task.ts';
import type { Offer, OfferList, Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { collectOffers, describeOffer, providersFor, surveyOffers } from './offers.ts';
import type { ProviderState } from './providers.ts';

const aProvider = (name: string, answer: (resources: Resources) => OfferList): Provider =>
  aStubProvider({ name, offers: async (resources) => answer(resources) });
const gives = (...offers: Offer[]) => aProvider('stub', () => ({ offers, whyNone: undefined }));
const nothing = (name: string, whyNone: string) => aProvider(name, () => ({ offers: [], whyNone }));
const notAsked = (name: string) =>
  aProvider(name, () => {
    throw new Error(`${name} was asked`);
  });

const requesting = (change: Partial<Resources> = {}): ResourceAlternatives => ({ order: 'any', choices: [someResources(change)] });
const clock = new FakeClock();
const collect = (alternatives: ResourceAlternatives, providers: readonly ProviderState[]) =>
  collectOffers(alternatives, providers, { clock });

test('each offer has its resource alternative', async () => {
  const choices = [someResources({ region: 'a' }), someResources({ region: 'b' })];
  const provider = aProvider('stub', ({ region }) => ({ offers: [anOffer({ region: region ?? '' })], whyNone: undefined }));
  const found = await collect({ order: 'any', choices }, statesOf(provider));
  expect(found.map(({ offer, alternative }) => [offer.region, alternative])).toEqual([
    ['a', 0],
    ['b', 1],
  ]);
});

test('only the named cloud is asked', async () => {
  const found = await collect(requesting({ cloud: 'stub' }), statesOf(gives(anOffer()), notAsked('other')));
  expect(found).toHaveLength(1);
});

const names = (used: readonly ProviderState[]): readonly string[] => used.map(({ name }) => name);

test('this machine is used when it is named or no other provider exists', () => {
  const providers = statesOf(notAsked('aws'), notAsked('local'));
  expect(names(providersFor(someResources(), providers))).toEqual(['aws']);
  expect(names(providersFor(someResources({ cloud: 'local' }), providers))).toEqual(['local']);
  expect(names(providersFor(someResources(), [aDisabledProvider('aws', ''), ...providers.slice(1)]))).toEqual(['local']);
});

test('an offer that the task excludes is dropped, whatever the provider returns', async () => {
  const offers = [
    anOffer({ instanceType: 'dear', zone: 'a', hourlyUsd: 3.2 }),
    anOffer({ instanceType: 'spot', zone: 'a', spot: true, hourlyUsd: 0.1 }),
    anOffer({ instanceType: 'far', region: 'elsewhere', hourlyUsd: 0.2 }),
    anOffer({ instanceType: 'zone', zone: 'b', hourlyUsd: 0.3 }),
    anOffer({ instanceType: 'foreign', provider: 'other', hourlyUsd: 0.4 }),
    anOffer({ instanceType: 'good', zone: 'a', hourlyUsd: 2 }),
  ];
  const resources = requesting({ cloud: 'stub', region: 'here', zone: 'a', maxHourlyCost: 2 });
  const survey = await surveyOffers(resources, statesOf(gives(...offers)), { clock, explain: true });
  expect(survey.candidates.map(({ offer }) => offer.instanceType)).toEqual(['good']);
  expect(survey.rejected.map(({ offer, why }) => `${offer.instanceType} ${why}`)).toEqual([
    'dear costs 3.20 $/h, more than max_hourly_cost (2.00 $/h)',
    'spot is a spot machine, none requested',
    'far is in elsewhere, not in here',
    'zone is in b, not in a',
    'foreign is on other, not on stub',
  ]);
});

test('an offer above max_hourly_cost is dropped, and the refusal names the cheapest', async () => {
  const offers = [anOffer({ instanceType: 'big', hourlyUsd: 9 }), anOffer({ instanceType: 'small', hourlyUsd: 1 })];
  await expect(collect(requesting({ maxHourlyCost: 0.5 }), statesOf(gives(...offers)))).rejects.toThrow(
    'stub: the cheapest, small, costs 1.00 $/h, more than max_hourly_cost (0.50 $/h).',
  );
});

test('without any offer, every provider gives its reason', async () => {
  const providers = statesOf(nothing('one', 'It has 2 vCPUs.'), nothing('two', 'It is full.'));
  await expect(collect(requesting(), providers)).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: 'No enabled provider offers what the task requests.\n  one: It has 2 vCPUs.\n  two: It is full.',
  });
});

test('a disabled provider gives its reason when it is named or the only one', async () => {
  const providers = [aDisabledProvider('aws', 'no credentials were found.'), ...statesOf(gives(anOffer()))];
  await expect(collect(requesting({ cloud: 'aws' }), providers)).rejects.toThrow('aws: not enabled: no credentials were found.');
  await expect(collect(requesting(), providers.slice(0, 1))).rejects.toThrow('aws: not enabled: no credentials were found.');
  await expect(collect(requesting({ cloud: 'gcp' }), providers)).rejects.toThrow(
    'gcp: this version has no such provider (it has aws, stub).',
  );
  await expect(collect(requesting({ cloud: 'awz' }), providers)).rejects.toThrow("(it has aws, stub). Did you mean 'aws'?");
});

test("when only a provider's name or part is wrong, the error reports that", async () => {
  const whyNone = "There is no Kubernetes context 'nope' (there are: a).";
  const providers = statesOf(
    aProvider('kubernetes', () => ({ offers: [], whyNone, isMisnamed: true })),
    nothing('aws', 'It is full.'),
  );
  await expect(collect(requesting({ cloud: 'kubernetes', region: 'nope' }), providers)).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: `The task names an unknown location.\n  kubernetes: ${whyNone}`,
    hint: expect.stringContaining('Correct infra'),
  });
  await expect(collect(requesting({ cloud: 'k8' }), providers)).rejects.toThrow("(it has k8s, aws). Did you mean 'k8s'?");
  const choices = [someResources({ cloud: 'kubernetes', region: 'nope' }), someResources({ cloud: 'aws' })];
  await expect(collect({ order: 'any', choices }, providers)).rejects.toThrow('No enabled provider offers what the task requests.');
});

test('without an offer, providers that could be enabled are named too', async () => {
  const providers = [aDisabledProvider('aws', 'no credentials were found.'), ...statesOf(gives())];
  await expect(collect(requesting(), providers)).rejects.toThrow(/\n  stub: .*\n  aws: not enabled: no credentials were found\.$/);
  await expect(collect(requesting({ cloud: 'stub' }), providers)).rejects.not.toThrow(/aws/);
});

test('a provider that fails or hangs is left out, and the others are used', async () => {
  const time = new FakeClock();
  const failing = aProvider('failing', () => {
    throw new SvcError('SVC_CATALOG', 'its table of prices cannot be read.');
  });
  const hanging = aStubProvider({ name: 'hanging', offers: () => new Promise(() => undefined) });
  const asking = surveyOffers(requesting(), statesOf(failing, hanging, gives(anOffer())), { clock: time });
  await time.advance(15_000);
  const { candidates, reasons } = await asking;
  expect(candidates).toHaveLength(1);
  expect(reasons).toEqual(['failing: its table of prices cannot be read.', 'hanging: it did not say within 15 s what it offers.']);
});

test('with explain, the survey has the machines that the task excludes', async () => {
  const rejected = [{ offer: anOffer({ instanceType: 'tiny' }), why: 'has 2 vCPUs, 4+ requested' }];
  const provider = aProvider('stub', () => ({ offers: [anOffer()], whyNone: undefined, rejected }));
  const survey = await surveyOffers(requesting(), statesOf(provider), { clock, explain: true });
  expect(survey.rejected).toMatchObject([{ offer: { instanceType: 'tiny' }, alternative: 0, why: 'has 2 vCPUs, 4+ requested' }]);
});

test('GPUs that no provider offers give SVC_NO_GPU', async () => {
  const requested = requesting({ accelerator: { name: 'H100', count: 8 } });
  await expect(collect(requested, statesOf(nothing('local', 'It has no GPU.')))).rejects.toMatchObject({ code: 'SVC_NO_GPU' });
});

test('providers with single-node machines offer none of several nodes and report why', async () => {
  const many = aStubProvider({
    name: 'many',
    capabilities: { ...aStubProvider().capabilities, multiNode: true },
    offers: () => Promise.resolve({ offers: [anOffer({ provider: 'many' })], whyNone: undefined }),
  });
  const survey = await surveyOffers(requesting(), statesOf(gives(anOffer()), many), { clock, nodes: 2 });
  expect(survey.candidates.map(({ offer }) => offer.provider)).toEqual(['many']);
  expect(survey.reasons).toEqual(['stub: its machines have one node each (num_nodes: 2).']);
  const only = collectOffers(requesting(), statesOf(gives(anOffer())), { clock, nodes: 2 });
  await expect(only).rejects.toMatchObject({ code: 'SVC_NO_PLACE', message: expect.stringContaining('num_nodes: 2') });
});

test('an offer is described by its size, accelerators and spot', () => {
  expect(describeOffer(anOffer(), 2)).toBe('2x(cpus=4, mem=16)');
  expect(describeOffer(anOffer())).toBe('1x(cpus=4, mem=16)');
  expect(describeOffer(anOffer({ accelerator: { name: 'L4', count: 2 }, spot: true }))).toBe('1x(cpus=4, mem=16, L4:2)[spot]');
});
