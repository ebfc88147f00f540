import fc from 'fast-check';
import { expect, test } from 'vitest';
import { someResources } from '../../test/support/builders.ts';
import { defaultCpus, isAmount, whyNot, withDefaultSize, type MatchableOffer } from './offer-match.ts';
import type { Amount, Resources } from './task.ts';

const atLeast = (value: number): Amount => ({ value, atLeast: true });
const exactly = (value: number): Amount => ({ value, atLeast: false });

function anOffer(change: Partial<MatchableOffer> = {}): MatchableOffer {
  return {
    provider: 'aws',
    region: 'us-east-1',
    zone: undefined,
    instanceType: 'm6i.xlarge',
    cpus: 4,
    memoryGb: 16,
    accelerator: undefined,
    spot: false,
    hourlyUsd: 0.192,
    ...change,
  };
}

const eightH100 = {
  instanceType: 'p5.48xlarge',
  cpus: 192,
  memoryGb: 2048,
  accelerator: { name: 'H100', count: 8, memoryGb: 80 },
  hourlyUsd: 55.04,
};

test('resources without requirements accept a machine without accelerators', () => {
  expect(whyNot(someResources(), anOffer())).toBeUndefined();
});

test.for<[string, Partial<Resources>, Partial<MatchableOffer>]>([
  ['has 4 vCPUs, 8+ requested', { cpus: atLeast(8) }, {}],
  ['has 4 vCPUs, 2 requested', { cpus: exactly(2) }, {}],
  ['has 1 vCPU, 2+ requested', { cpus: atLeast(2) }, { cpus: 1 }],
  ['has 16 GB of memory, 32+ requested', { memory: atLeast(32) }, {}],
  ['is in us-east-1, not in eu-west-1', { region: 'eu-west-1' }, {}],
  ['is on aws, not on gcp', { cloud: 'gcp' }, {}],
  ['is in us-east-1a, not in us-east-1b', { zone: 'us-east-1b' }, { zone: 'us-east-1a' }],
  ['is in us-east-1, in no zone of its own, not in us-east-1b', { zone: 'us-east-1b' }, {}],
  ['is of type m6i.xlarge, m6i.large requested', { instanceType: 'm6i.large' }, {}],
  ['has no accelerator, 1x L4 requested', { accelerator: { name: 'L4', count: 1 } }, {}],
  ['has 8x H100, 4x H100 requested', { accelerator: { name: 'H100', count: 4 } }, eightH100],
  ['has 8x H100, 8x H200 requested', { accelerator: { name: 'H200', count: 8 } }, eightH100],
  ['has 8x H100, none requested', {}, eightH100],
  [
    'has 8x H100 of 80 GB, 8x any of 141+ GB requested',
    { acceleratorMemory: { ...atLeast(141), count: 8, manufacturer: undefined } },
    eightH100,
  ],
  [
    'has 8x H100 of 80 GB, 1x any of 80+ GB requested',
    { acceleratorMemory: { ...atLeast(80), count: 1, manufacturer: undefined } },
    eightH100,
  ],
  ['has 8x H100 of 80 GB, 8x amd of 80+ GB requested', { acceleratorMemory: { ...atLeast(80), count: 8, manufacturer: 'amd' } }, eightH100],
  ['has no accelerator, 1x any of 80 GB requested', { acceleratorMemory: { ...exactly(80), count: 1, manufacturer: undefined } }, {}],
  ['is not a spot machine, one is requested', { useSpot: true }, {}],
  ['is a spot machine, none requested', {}, { spot: true }],
  ['costs 55.04 $/h, more than max_hourly_cost (50.00 $/h)', { accelerator: { name: 'H100', count: 8 }, maxHourlyCost: 50 }, eightH100],
  ['costs 0.192 $/h, more than max_hourly_cost (0.10 $/h)', { maxHourlyCost: 0.1 }, {}],
  ['has no known price, and max_hourly_cost is 1.00 $/h', { maxHourlyCost: 1 }, { hourlyUsd: undefined }],
  ['has arm64 processors, which run no programs for x86_64 (name its instance_type to use it)', {}, { architecture: 'arm64' }],
])('says: %s', ([clause, requested, offered]) => {
  expect(whyNot(someResources(requested), anOffer(offered))).toBe(clause);
});

test('accelerator names are compared in canonical form, and any host size matches', () => {
  const requested = someResources({ accelerator: { name: 'nvidia_h100-80gb', count: 8 } });
  expect(whyNot(requested, anOffer(eightH100))).toBeUndefined();
});

test("without memory in the offer, svc uses the accelerator's known memory", () => {
  const requested = someResources({ acceleratorMemory: { ...atLeast(80), count: 8, manufacturer: 'nvidia' } });
  expect(whyNot(requested, anOffer({ ...eightH100, accelerator: { name: 'H100', count: 8 } }))).toBeUndefined();
  expect(whyNot(requested, anOffer({ ...eightH100, accelerator: { name: 'Q9', count: 8 } }))).toBe(
    'has 8x Q9, 8x nvidia of 80+ GB requested',
  );
});

test('a named instance type matches with its accelerators and its architecture', () => {
  const named = someResources({ instanceType: 'g5g.xlarge' });
  const offer = anOffer({ instanceType: 'g5g.xlarge', accelerator: { name: 'T4g', count: 1 }, architecture: 'arm64' });
  expect(whyNot(named, offer)).toBeUndefined();
});

test('a rented machine without a requested size has 8+ vCPUs and 2 GB each', () => {
  expect(withDefaultSize(someResources())).toEqual(someResources({ cpus: defaultCpus, memory: atLeast(16) }));
  expect(withDefaultSize(someResources({ cpus: exactly(2) }))).toEqual(someResources({ cpus: exactly(2), memory: atLeast(4) }));
});

test('any field that gives a size disables the defaults', () => {
  for (const sized of [
    someResources({ memory: atLeast(4) }),
    someResources({ instanceType: 't3.nano' }),
    someResources({ accelerator: { name: 'L4', count: 1 } }),
    someResources({ acceleratorMemory: { ...atLeast(24), count: 1, manufacturer: undefined } }),
  ]) {
    expect(withDefaultSize(sized)).toEqual(sized);
  }
});

// ---- The inverse check: an offer satisfies when it is in the intersection of the sets that each field allows.

const amount = fc.record({ value: fc.constantFrom(1, 2, 4, 8), atLeast: fc.boolean() });
const optional = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(values, { nil: undefined });
const gpu = fc.record({ name: fc.constantFrom('L4', 'l4', 'H100', 'T4', 'tesla-t4'), count: fc.constantFrom(1, 2, 8) });

const requested: fc.Arbitrary<Resources> = fc
  .record({
    cloud: optional(fc.constantFrom('aws', 'gcp')),
    region: optional(fc.constantFrom('east', 'west')),
    zone: optional(fc.constantFrom('a', 'b')),
    cpus: optional(amount),
    memory: optional(amount),
    accelerator: optional(gpu),
    instanceType: optional(fc.constantFrom('small', 'large')),
    useSpot: fc.boolean(),
    maxHourlyCost: optional(fc.constantFrom(0.5, 1, 2)),
  })
  .map((change) => someResources(change));

const offered: fc.Arbitrary<MatchableOffer> = fc.record({
  provider: fc.constantFrom('aws', 'gcp'),
  region: fc.constantFrom('east', 'west'),
  zone: optional(fc.constantFrom('a', 'b')),
  instanceType: fc.constantFrom('small', 'large'),
  cpus: fc.constantFrom(1, 2, 4, 8),
  memoryGb: fc.constantFrom(1, 2, 4, 8),
  accelerator: optional(gpu),
  spot: fc.boolean(),
  hourlyUsd: optional(fc.constantFrom(0.4, 1, 3)),
  architecture: fc.constantFrom('x86_64', 'arm64', undefined),
});

const plainNames: Readonly<Record<string, string>> = { l4: 'L4', 'tesla-t4': 'T4' };

function allowed(resources: Resources, offers: readonly MatchableOffer[]): ReadonlySet<MatchableOffer> {
  const sets = [
    offers.filter((offer) => [undefined, offer.provider].includes(resources.cloud)),
    offers.filter((offer) => [undefined, offer.region].includes(resources.region)),
    offers.filter((offer) => [undefined, offer.zone].includes(resources.zone)),
    offers.filter((offer) => [undefined, offer.instanceType].includes(resources.instanceType)),
    offers.filter((offer) => offer.cpus >= (resources.cpus?.value ?? 0)),
    offers.filter((offer) => resources.cpus?.atLeast !== false || offer.cpus === resources.cpus.value),
    offers.filter((offer) => resources.memory?.atLeast !== false || offer.memoryGb === resources.memory.value),
    offers.filter((offer) => offer.memoryGb >= (resources.memory?.value ?? 0)),
    offers.filter((offer) => offer.spot === resources.useSpot),
    offers.filter((offer) => (offer.hourlyUsd ?? Number.POSITIVE_INFINITY) <= (resources.maxHourlyCost ?? Number.POSITIVE_INFINITY)),
    offers.filter((offer) => {
      const text = (one: typeof offer.accelerator): string => (one === undefined ? '' : `${one.count} ${plainNames[one.name] ?? one.name}`);
      if (resources.accelerator !== undefined) return text(offer.accelerator) === text(resources.accelerator);
      return resources.instanceType !== undefined || (offer.accelerator === undefined && offer.architecture !== 'arm64');
    }),
  ];
  return new Set(offers.filter((offer) => sets.every((set) => set.includes(offer))));
}

test('an offer has a reason exactly when some field excludes it', () => {
  const property = fc.property(requested, fc.array(offered, { maxLength: 20 }), (resources, offers) => {
    const accepted = offers.filter((offer) => whyNot(resources, offer) === undefined);
    expect(new Set(accepted)).toEqual(allowed(resources, offers));
  });
  fc.assert(property, { numRuns: 2000 });
});

test('an amount with a plus is a lower bound; without one it is exact', () => {
  fc.assert(
    fc.property(fc.nat(20), fc.nat(20), (present, value) => {
      expect(isAmount(present, atLeast(value))).toBe(!(present < value));
      expect(isAmount(present, exactly(value))).toBe(present - value === 0);
    }),
  );
});
