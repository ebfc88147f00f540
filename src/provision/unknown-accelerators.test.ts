import { expect, test } from 'vitest';
import { anOffer, someResources } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { providersOf } from '../../test/support/providers.ts';
import { aStubProvider } from '../../test/support/stub-provider.ts';
import type { ProviderCheck } from '../providers/provider.ts';
import { collectOffers, describeUnknown, unknownAccelerators } from './offers.ts';

const requesting = (...names: readonly string[]) => names.map((name) => someResources({ accelerator: { name, count: 1 } }));

const said = (...texts: readonly string[]): { readonly check: ProviderCheck } => ({
  check: {
    enabled: true,
    summary: 'well',
    remedies: [],
    details: texts.map((text, index) => [`fact ${index}`, text] as const),
    sharedPorts: undefined,
  },
});

const noSources = { providers: [], tables: [] };

test.for([
  ['H1000', ['H100']],
  ['L40X', ['L40', 'L40S']],
  ['something-else-altogether', []],
] as const)('no source knows %s; the nearest names are %j', ([name, nearest]) => {
  expect(unknownAccelerators(requesting(name, name, 'A100'), noSources)).toEqual([{ name, nearest }]);
});

test('a name in the catalogue is known in any spelling', () => {
  expect(unknownAccelerators(requesting('h100', 'NVIDIA-A100-SXM4-80GB', 'tesla-t4'), noSources)).toEqual([]);
});

test("a node's label makes a name known, even when none of it is free", () => {
  const sources = { providers: [said('Kubernetes v1.20.2, 3 nodes, GPUs: 0 of 8 H1000 (labels of svc) free')], tables: [] };
  expect(unknownAccelerators(requesting('H1000', 'H10'), sources).map(({ name }) => name)).toEqual(['H10']);
});

test("an SSH host's driver and a price table make a name known", () => {
  expect(unknownAccelerators(requesting('Foo-9000'), { providers: [said('2x NVIDIA Foo 9000')], tables: [] })).toEqual([]);
  expect(unknownAccelerators(requesting('foo9000', 'foo9001'), { providers: [], tables: ['Foo9000'] })).toEqual([
    { name: 'foo9001', nearest: ['Foo9000'] },
  ]);
});

const none = aStubProvider({ name: 'aws', offers: async () => ({ offers: [], whyNone: 'It has 2 vCPUs.' }) });
const refusal = async (...names: readonly string[]): Promise<unknown> => {
  const providers = await providersOf(none).states();
  return collectOffers({ order: 'any', choices: requesting(...names) }, providers, { clock: new FakeClock() }).catch(
    (error: unknown) => error,
  );
};

test('without any offer, an unknown name is reported first', async () => {
  expect(await refusal('H1000')).toMatchObject({
    code: 'SVC_NO_GPU',
    message: `${describeUnknown({ name: 'H1000', nearest: ['H100'] })}\n  aws: It has 2 vCPUs.`,
    hint: expect.stringContaining('svc offers'),
  });
  expect(describeUnknown({ name: 'H1000', nearest: ['H100'] })).toBe(
    "No provider offers an accelerator 'H1000', and svc knows none of that name. Did you mean H100?",
  );
});

test('beside known alternatives, an unknown name is one of the reasons', async () => {
  expect(await refusal('H1000', 'A100')).toMatchObject({
    message: expect.stringMatching(
      /^No enabled provider offers what the task requests\.\n {2}No provider offers .* 'H1000'.* Did you mean H100\?\n {2}aws: /,
    ),
  });
  expect(await refusal('A100')).toMatchObject({ message: 'No enabled provider offers what the task requests.\n  aws: It has 2 vCPUs.' });
});

test('an accelerator that a provider offers is known', async () => {
  const offer = anOffer({ provider: 'aws', accelerator: { name: 'H1000', count: 1 } });
  const providers = await providersOf(
    aStubProvider({ name: 'aws', offers: async () => ({ offers: [offer], whyNone: undefined }) }),
  ).states();
  const found = await collectOffers({ order: 'any', choices: requesting('H1000') }, providers, { clock: new FakeClock() });
  expect(found.map(({ offer: one }) => one)).toEqual([offer]);
});
