import { expect, test } from 'vitest';
import { anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { placesOf } from '../../test/support/places.ts';
import { aStubPlace } from '../../test/support/stub-place.ts';
import type { ProviderCheck } from '../providers/provider.ts';
import { collectOffers } from './offers.ts';
import { describeUnknown, unknownAccelerators } from './unknown-accelerators.ts';

const wanting = (...names: readonly string[]) => names.map((name) => someResources({ accelerator: { name, count: 1 } }));

const said = (...texts: readonly string[]): { readonly check: ProviderCheck } => ({
  check: {
    enabled: true,
    summary: 'well',
    remedies: [],
    details: texts.map((text, index) => [`fact ${index}`, text] as const),
    sharedPorts: undefined,
  },
});

const nobody = { places: [], tables: [] };

test.for([
  ['H1000', ['H100']],
  ['L40X', ['L40', 'L40S']],
  ['something-else-altogether', []],
] as const)('%s is known to nobody; the nearest are %j', ([name, nearest]) => {
  expect(unknownAccelerators(wanting(name, name, 'A100'), nobody)).toEqual([{ name, nearest }]);
});

test('a name under which the catalogue has it is known, however it is written', () => {
  expect(unknownAccelerators(wanting('h100', 'NVIDIA-A100-SXM4-80GB', 'tesla-t4'), nobody)).toEqual([]);
});

test('a label of a node may carry a name that the catalogue does not have, also when none of it is free', () => {
  const sources = { places: [said('Kubernetes v1.20.2, 3 nodes, GPUs: 0 of 8 H1000 (labels of svc) free')], tables: [] };
  expect(unknownAccelerators(wanting('H1000', 'H10'), sources).map(({ name }) => name)).toEqual(['H10']);
});

test('so may the driver of a host, and a table of prices', () => {
  expect(unknownAccelerators(wanting('Foo-9000'), { places: [said('2x NVIDIA Foo 9000')], tables: [] })).toEqual([]);
  expect(unknownAccelerators(wanting('foo9000', 'foo9001'), { places: [], tables: ['Foo9000'] })).toEqual([
    { name: 'foo9001', nearest: ['Foo9000'] },
  ]);
});

const none = aStubPlace({ name: 'aws', offers: async () => ({ offers: [], whyNone: 'It has 2 vCPUs.' }) });
const refusal = async (...names: readonly string[]): Promise<unknown> => {
  const places = await placesOf(none).states();
  return collectOffers({ order: 'any', choices: wanting(...names) }, places, { clock: new FakeClock() }).catch((error: unknown) => error);
};

test('where nobody offers anything, a name that nobody knows is what is told first', async () => {
  expect(await refusal('H1000')).toMatchObject({
    code: 'SVC_NO_GPU',
    message: `${describeUnknown({ name: 'H1000', nearest: ['H100'] })}\n  aws: It has 2 vCPUs.`,
    hint: expect.stringContaining('svc offers'),
  });
  expect(describeUnknown({ name: 'H1000', nearest: ['H100'] })).toBe(
    "No place says that it has an accelerator 'H1000', and svc knows none of that name. Did you mean H100?",
  );
});

test('beside alternatives that are known it is one of the reasons', async () => {
  expect(await refusal('H1000', 'A100')).toMatchObject({
    message: expect.stringMatching(
      /^No enabled place has what the task asks for\.\n {2}No place says .* 'H1000'.* Did you mean H100\?\n {2}aws: /,
    ),
  });
  expect(await refusal('A100')).toMatchObject({ message: 'No enabled place has what the task asks for.\n  aws: It has 2 vCPUs.' });
});

test('what a place offers is known to it', async () => {
  const offer = anOffer({ provider: 'aws', accelerator: { name: 'H1000', count: 1 } });
  const places = await placesOf(aStubPlace({ name: 'aws', offers: async () => ({ offers: [offer], whyNone: undefined }) })).states();
  const found = await collectOffers({ order: 'any', choices: wanting('H1000') }, places, { clock: new FakeClock() });
  expect(found.map(({ offer: one }) => one)).toEqual([offer]);
});
