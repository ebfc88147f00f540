import { expect, test } from 'vitest';
import { anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aDisabledPlace, statesOf } from '../../test/support/places.ts';
import { aStubPlace } from '../../test/support/stub-place.ts';
import type { ResourceAlternatives, Resources } from '../domain/task.ts';
import type { Offer, OfferList, Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { collectOffers, describeOffer, placesFor, surveyOffers } from './offers.ts';
import type { PlaceState } from './places.ts';

const aPlace = (name: string, answer: (resources: Resources) => OfferList): Provider =>
  aStubPlace({ name, offers: async (resources) => answer(resources) });
const gives = (...offers: Offer[]) => aPlace('stub', () => ({ offers, whyNone: undefined }));
const nothing = (name: string, whyNone: string) => aPlace(name, () => ({ offers: [], whyNone }));
const notAsked = (name: string) =>
  aPlace(name, () => {
    throw new Error(`${name} was asked`);
  });

const wanting = (change: Partial<Resources> = {}): ResourceAlternatives => ({ order: 'any', choices: [someResources(change)] });
const clock = new FakeClock();
const collect = (alternatives: ResourceAlternatives, places: readonly PlaceState[]) => collectOffers(alternatives, places, { clock });

test('each offer knows which alternative it is for', async () => {
  const choices = [someResources({ region: 'a' }), someResources({ region: 'b' })];
  const place = aPlace('stub', ({ region }) => ({ offers: [anOffer({ region: region ?? '' })], whyNone: undefined }));
  const found = await collect({ order: 'any', choices }, statesOf(place));
  expect(found.map(({ offer, alternative }) => [offer.region, alternative])).toEqual([
    ['a', 0],
    ['b', 1],
  ]);
});

test('only the named cloud is asked', async () => {
  const found = await collect(wanting({ cloud: 'stub' }), statesOf(gives(anOffer()), notAsked('other')));
  expect(found).toHaveLength(1);
});

const names = (used: readonly PlaceState[]): readonly string[] => used.map(({ name }) => name);

test('this machine takes part when it is named or when there is no other place', () => {
  const places = statesOf(notAsked('aws'), notAsked('local'));
  expect(names(placesFor(someResources(), places))).toEqual(['aws']);
  expect(names(placesFor(someResources({ cloud: 'local' }), places))).toEqual(['local']);
  expect(names(placesFor(someResources(), [aDisabledPlace('aws', ''), ...places.slice(1)]))).toEqual(['local']);
});

test('what the task rules out is no offer, whatever the place says', async () => {
  const offers = [
    anOffer({ instanceType: 'dear', zone: 'a', hourlyUsd: 3.2 }),
    anOffer({ instanceType: 'spot', zone: 'a', spot: true, hourlyUsd: 0.1 }),
    anOffer({ instanceType: 'far', region: 'elsewhere', hourlyUsd: 0.2 }),
    anOffer({ instanceType: 'zone', zone: 'b', hourlyUsd: 0.3 }),
    anOffer({ instanceType: 'foreign', provider: 'other', hourlyUsd: 0.4 }),
    anOffer({ instanceType: 'good', zone: 'a', hourlyUsd: 2 }),
  ];
  const resources = wanting({ cloud: 'stub', region: 'here', zone: 'a', maxHourlyCost: 2 });
  const survey = await surveyOffers(resources, statesOf(gives(...offers)), { clock, explain: true });
  expect(survey.candidates.map(({ offer }) => offer.instanceType)).toEqual(['good']);
  expect(survey.rejected.map(({ offer, why }) => `${offer.instanceType} ${why}`)).toEqual([
    'dear costs 3.20 $/h, more than max_hourly_cost (2.00 $/h)',
    'spot is a spot machine, none wanted',
    'far is in elsewhere, not in here',
    'zone is in b, not in a',
    'foreign is on other, not on stub',
  ]);
});

test('what costs more than max_hourly_cost is no offer, and the refusal names the cheapest', async () => {
  const offers = [anOffer({ instanceType: 'big', hourlyUsd: 9 }), anOffer({ instanceType: 'small', hourlyUsd: 1 })];
  await expect(collect(wanting({ maxHourlyCost: 0.5 }), statesOf(gives(...offers)))).rejects.toThrow(
    'stub: the cheapest, small, costs 1.00 $/h, more than max_hourly_cost (0.50 $/h).',
  );
});

test('without any offer every place gives its reason', async () => {
  const places = statesOf(nothing('one', 'It has 2 vCPUs.'), nothing('two', 'It is full.'));
  await expect(collect(wanting(), places)).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: 'No enabled place has what the task asks for.\n  one: It has 2 vCPUs.\n  two: It is full.',
  });
});

test('a place that is not enabled says why, when it is named and when it is the only one', async () => {
  const places = [aDisabledPlace('aws', 'no credentials were found.'), ...statesOf(gives(anOffer()))];
  await expect(collect(wanting({ cloud: 'aws' }), places)).rejects.toThrow('aws: not enabled: no credentials were found.');
  await expect(collect(wanting(), places.slice(0, 1))).rejects.toThrow('aws: not enabled: no credentials were found.');
  await expect(collect(wanting({ cloud: 'gcp' }), places)).rejects.toThrow('gcp: this version has no such place (it has aws, stub).');
  await expect(collect(wanting({ cloud: 'awz' }), places)).rejects.toThrow("(it has aws, stub). Did you mean 'aws'?");
});

test('where only the name of a place or of its part is wrong, the error is about that', async () => {
  const whyNone = "There is no Kubernetes context 'nope' (there are: a).";
  const places = statesOf(
    aPlace('kubernetes', () => ({ offers: [], whyNone, isMisnamed: true })),
    nothing('aws', 'It is full.'),
  );
  await expect(collect(wanting({ cloud: 'kubernetes', region: 'nope' }), places)).rejects.toMatchObject({
    code: 'SVC_NO_PLACE',
    message: `The task names a place that there is not.\n  kubernetes: ${whyNone}`,
    hint: expect.stringContaining('Correct infra'),
  });
  await expect(collect(wanting({ cloud: 'k8' }), places)).rejects.toThrow("(it has k8s, aws). Did you mean 'k8s'?");
  const choices = [someResources({ cloud: 'kubernetes', region: 'nope' }), someResources({ cloud: 'aws' })];
  await expect(collect({ order: 'any', choices }, places)).rejects.toThrow('No enabled place has what the task asks for.');
});

test('where nothing is found, places that could be enabled are named besides', async () => {
  const places = [aDisabledPlace('aws', 'no credentials were found.'), ...statesOf(gives())];
  await expect(collect(wanting(), places)).rejects.toThrow(/\n  stub: .*\n  aws: not enabled: no credentials were found\.$/);
  await expect(collect(wanting({ cloud: 'stub' }), places)).rejects.not.toThrow(/aws/);
});

test('a place that fails or hangs is left out, and the others are used', async () => {
  const time = new FakeClock();
  const failing = aPlace('failing', () => {
    throw new SvcError('SVC_CATALOG', 'its table of prices cannot be read.');
  });
  const hanging = aStubPlace({ name: 'hanging', offers: () => new Promise(() => undefined) });
  const asking = surveyOffers(wanting(), statesOf(failing, hanging, gives(anOffer())), { clock: time });
  await time.advance(15_000);
  const { candidates, reasons } = await asking;
  expect(candidates).toHaveLength(1);
  expect(reasons).toEqual(['failing: its table of prices cannot be read.', 'hanging: it did not say within 15 s what it offers.']);
});

test('with explanations, what places have and does not do is told', async () => {
  const rejected = [{ offer: anOffer({ instanceType: 'tiny' }), why: 'has 2 vCPUs, 4+ wanted' }];
  const place = aPlace('stub', () => ({ offers: [anOffer()], whyNone: undefined, rejected }));
  const survey = await surveyOffers(wanting(), statesOf(place), { clock, explain: true });
  expect(survey.rejected).toMatchObject([{ offer: { instanceType: 'tiny' }, alternative: 0, why: 'has 2 vCPUs, 4+ wanted' }]);
});

test('GPUs that nobody has are an error of their own', async () => {
  const wanted = wanting({ accelerator: { name: 'H100', count: 8 } });
  await expect(collect(wanted, statesOf(nothing('local', 'It has no GPU.')))).rejects.toMatchObject({ code: 'SVC_NO_GPU' });
});

test('places whose machines have one node each offer none of several, and say so', async () => {
  const many = aStubPlace({
    name: 'many',
    capabilities: { ...aStubPlace().capabilities, multiNode: true },
    offers: () => Promise.resolve({ offers: [anOffer({ provider: 'many' })], whyNone: undefined }),
  });
  const survey = await surveyOffers(wanting(), statesOf(gives(anOffer()), many), { clock, nodes: 2 });
  expect(survey.candidates.map(({ offer }) => offer.provider)).toEqual(['many']);
  expect(survey.reasons).toEqual(['stub: its machines have one node each (num_nodes: 2).']);
  const only = collectOffers(wanting(), statesOf(gives(anOffer())), { clock, nodes: 2 });
  await expect(only).rejects.toMatchObject({ code: 'SVC_NO_PLACE', message: expect.stringContaining('num_nodes: 2') });
});

test('an offer in a few words', () => {
  expect(describeOffer(anOffer(), 2)).toBe('2x(cpus=4, mem=16)');
  expect(describeOffer(anOffer())).toBe('1x(cpus=4, mem=16)');
  expect(describeOffer(anOffer({ accelerator: { name: 'L4', count: 2 }, spot: true }))).toBe('1x(cpus=4, mem=16, L4:2)[spot]');
});
