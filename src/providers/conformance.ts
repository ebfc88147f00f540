import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import type { Resources } from '../domain/task.ts';
import type { Remote } from '../remote/remote.ts';
import { systemClock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { isMachineId, type MachineId, type MachineSpec, type Offer, type Provider } from './provider.ts';

/** A place made ready for the suite. */
export interface ProviderFixture {
  readonly provider: Provider;
  /** The same place as another process would open it. */
  readonly other: Provider;
  /** Resources that the place has. */
  readonly resources: Resources;
  /** From now on the place refuses new machines for want of capacity. */
  refuse(): Promise<void>;
  /** From now on the place has taken back every machine. */
  preemptAll(): Promise<void>;
  /** Settles when a machine that is booting runs. */
  untilRunning(id: MachineId): Promise<void>;
}

/** One thing that every provider does. Fails by throwing. */
export interface ProviderCase {
  readonly name: string;
  readonly run: (fixture: ProviderFixture) => Promise<void>;
}

const spec = (tags: Readonly<Record<string, string>> = {}, nodes = 1): MachineSpec => ({
  tags: { 'svc-service': 'chat', ...tags },
  labels: {},
  ports: [8080],
  clients: [],
  diskSizeGb: 10,
  diskTier: undefined,
  imageId: undefined,
  nodes,
  volumes: {},
  placeConfig: {},
  role: 'replica',
});

async function firstOffer({ provider, resources }: ProviderFixture): Promise<Offer> {
  const { offers, whyNone } = await provider.offers(resources, {});
  const [offer] = offers;
  if (offer === undefined) throw new Error(`no offer: ${whyNone}`);
  return offer;
}

async function create(fixture: ProviderFixture, key: string, tags?: Readonly<Record<string, string>>): Promise<MachineId> {
  const id = await fixture.provider.create(await firstOffer(fixture), spec(tags), key, {});
  await fixture.untilRunning(id);
  return id;
}

/** Settles when it is so, or fails; for what places tell in their own time. */
async function until(isSo: () => boolean, what: string): Promise<void> {
  for (let attempt = 0; attempt < untilAttempts && !isSo(); attempt += 1) await systemClock.sleep(untilPauseMs);
  ok(isSo(), what);
}

/** A file that nobody else writes. */
const scratchOf = (remote: Remote): string => `${remote.baseDir}/conformance`;

const untilPauseMs = 20;
const untilAttempts = 500;

async function stateOf(provider: Provider, id: MachineId): Promise<string | undefined> {
  const status = (await provider.inspect([id], {})).get(id);
  return status?.state === 'gone' ? `gone: ${status.reason}` : status?.state;
}

function unknownId(): MachineId {
  const id = '0123456789abcdef';
  if (!isMachineId(id)) throw new Error('not an id');
  return id;
}

/** What every provider does, whatever the place. A new one has to pass all of it; each case gets a place of its own. */
export const providerCases: readonly ProviderCase[] = [
  {
    name: 'check says whether it can be used and in one line what was found',
    async run({ provider }) {
      const { enabled, summary } = await provider.check({});
      strictEqual(enabled, true);
      ok(summary !== '' && !summary.includes('\n'));
    },
  },
  {
    name: 'offers are its own, satisfy what was asked for, and come cheapest first',
    async run({ provider, resources }) {
      const { offers } = await provider.offers({ ...resources, cpus: { value: 1, atLeast: true } }, {});
      ok(offers.length > 0);
      ok(offers.every((offer) => offer.provider === provider.name && offer.cpus >= 1));
      const prices = offers.map((offer) => offer.hourlyUsd);
      deepStrictEqual(
        prices,
        prices.toSorted((a, b) => a - b),
      );
    },
  },
  {
    name: 'no offers come with a sentence that names what was asked for',
    async run({ provider, resources }) {
      const { offers, whyNone } = await provider.offers({ ...resources, accelerator: { name: 'NoSuchGpu', count: 3 } }, {});
      strictEqual(offers.length, 0);
      ok(whyNone?.includes('NoSuchGpu'), whyNone);
      ok(whyNone?.endsWith('.'), whyNone);
    },
  },
  {
    name: 'a machine that was created runs, and is listed with its tags',
    async run(fixture) {
      const id = await create(fixture, 'key-1', { 'svc-replica': '1' });
      strictEqual(await stateOf(fixture.provider, id), 'running');
      deepStrictEqual(await fixture.provider.list({ 'svc-replica': '1' }, {}), [
        { id, tags: { 'svc-service': 'chat', 'svc-replica': '1' } },
      ]);
    },
  },
  {
    name: 'creating twice with one key gives one machine, also from another process',
    async run(fixture) {
      const { provider, other } = fixture;
      const offer = await firstOffer(fixture);
      const first = await provider.create(offer, spec(), 'key-1', {});
      strictEqual(await provider.create(offer, spec(), 'key-1', {}), first);
      strictEqual(await other.create(offer, spec(), 'key-1', {}), first);
      strictEqual((await provider.list({}, {})).length, 1);
    },
  },
  {
    name: 'creating at the same time with one key gives one machine, with several keys several',
    async run(fixture) {
      const { provider, other } = fixture;
      const offer = await firstOffer(fixture);
      const ids = await Promise.all(
        ['a', 'a', 'b', 'a', 'b'].map((key, index) => (index % 2 === 0 ? provider : other).create(offer, spec(), key, {})),
      );
      const [a, , b] = ids;
      notStrictEqual(a, b);
      deepStrictEqual(ids, [a, a, b, a, b]);
      strictEqual((await provider.list({}, {})).length, 2);
    },
  },
  {
    name: 'an unknown machine is gone',
    async run({ provider }) {
      const id = unknownId();
      ok((await stateOf(provider, id))?.startsWith('gone'));
    },
  },
  {
    name: 'many machines are inspected at once, each with its own state',
    async run(fixture) {
      const ids = [await create(fixture, 'a'), unknownId(), await create(fixture, 'b')];
      const statuses = await fixture.provider.inspect(ids, {});
      deepStrictEqual(
        ids.map((id) => statuses.get(id)?.state),
        ['running', 'gone', 'running'],
      );
    },
  },
  {
    name: 'a destroyed machine is gone and no longer listed; destroying again, or what never was, is success',
    async run(fixture) {
      const { provider, other } = fixture;
      const id = await create(fixture, 'key-1');
      await provider.destroy(id, {});
      ok((await stateOf(provider, id))?.startsWith('gone'));
      deepStrictEqual(await other.list({}, {}), []);
      await provider.destroy(id, {});
      await other.destroy(id, {});
      await provider.destroy(unknownId(), {});
    },
  },
  {
    name: 'destroying at the same time from two processes is success for both',
    async run(fixture) {
      const id = await create(fixture, 'key-1');
      await Promise.all([fixture.provider.destroy(id, {}), fixture.other.destroy(id, {})]);
      ok((await stateOf(fixture.provider, id))?.startsWith('gone'));
    },
  },
  {
    name: 'listing finds the machines that have all of the given tags',
    async run(fixture) {
      const a = await create(fixture, 'a', { 'svc-replica': '1' });
      const b = await create(fixture, 'b', { 'svc-replica': '2' });
      const found = async (tags: Readonly<Record<string, string>>): Promise<readonly string[]> =>
        (await fixture.other.list(tags, {})).map(({ id }) => String(id)).toSorted((x, y) => x.localeCompare(y));
      deepStrictEqual(
        await found({ 'svc-service': 'chat' }),
        [a, b].map(String).toSorted((x, y) => x.localeCompare(y)),
      );
      deepStrictEqual(await found({ 'svc-service': 'chat', 'svc-replica': '2' }), [b]);
      deepStrictEqual(await found({ 'svc-service': 'other' }), []);
    },
  },
  {
    name: 'a place without room says so with an error of kind capacity and makes nothing',
    async run(fixture) {
      const offer = await firstOffer(fixture);
      await fixture.refuse();
      await rejects(fixture.provider.create(offer, spec(), 'key-1', {}), (error) => error instanceof SvcError && error.kind === 'capacity');
      deepStrictEqual(await fixture.provider.list({}, {}), []);
    },
  },
  {
    name: 'a machine that was created is given again even while there is no room for new ones',
    async run(fixture) {
      const offer = await firstOffer(fixture);
      const id = await fixture.provider.create(offer, spec(), 'key-1', {});
      await fixture.refuse();
      strictEqual(await fixture.other.create(offer, spec(), 'key-1', {}), id);
    },
  },
  {
    name: 'a machine that the place took back is preempted, however often one asks, until it is destroyed',
    async run(fixture) {
      const { provider, other } = fixture;
      const id = await create(fixture, 'key-1');
      await fixture.preemptAll();
      strictEqual(await stateOf(provider, id), 'gone: preempted');
      strictEqual(await stateOf(other, id), 'gone: preempted');
      await provider.destroy(id, {});
      deepStrictEqual(await provider.list({}, {}), []);
    },
  },
  {
    name: 'a call that was cancelled before it began does nothing',
    async run(fixture) {
      const offer = await firstOffer(fixture);
      const signal = AbortSignal.abort();
      await rejects(fixture.provider.create(offer, spec(), 'key-1', { signal }));
      await rejects(fixture.provider.offers(fixture.resources, { signal }));
      deepStrictEqual(await fixture.provider.list({}, {}), []);
    },
  },
  {
    name: 'a machine of several nodes is one machine; its nodes are told by rank, and the first is what remote gives',
    async run(fixture) {
      const { provider, other } = fixture;
      if (!provider.capabilities.multiNode) return ok(!('nodes' in provider), 'it has nodes, but says that it has no machines of several');
      const id = await provider.create(await firstOffer(fixture), spec({}, 2), 'key-1', {});
      await fixture.untilRunning(id);
      deepStrictEqual(
        (await other.list({}, {})).map((machine) => machine.id),
        [id],
      );
      const nodes = (await other.nodes?.(id, {})) ?? [];
      deepStrictEqual(
        nodes.map(({ rank }) => rank),
        [0, 1],
      );
      strictEqual(new Set(nodes.map(({ ip }) => ip)).size, 2);
      const [head, worker] = nodes;
      if (head === undefined || worker === undefined) throw new Error('not two nodes');
      await head.remote.writeFile(scratchOf(head.remote), 'head');
      await worker.remote.writeFile(scratchOf(worker.remote), 'worker');
      strictEqual(await provider.remote(id).readFile(scratchOf(provider.remote(id))), 'head');
      strictEqual(await worker.remote.readFile(scratchOf(worker.remote)), 'worker');
      await provider.destroy(id, {});
      deepStrictEqual(await other.list({}, {}), []);
      return rejects(async () => other.nodes?.(id, {}));
    },
  },
  {
    name: 'who watches is told soon of a machine that the place takes, until he goes',
    async run(fixture) {
      const { provider } = fixture;
      if (provider.watch === undefined) return;
      const id = await create(fixture, 'key-1');
      const over = new AbortController();
      let told = 0;
      provider.watch(() => (told += 1), over.signal);
      await fixture.preemptAll();
      await until(() => told > 0, 'nobody was told of it');
      ok((await stateOf(provider, id))?.startsWith('gone'));
      over.abort();
      await provider.destroy(id, {});
      // One that was stopped from the beginning is never told.
      provider.watch(() => ok(false, 'told although its signal had aborted'), over.signal);
    },
  },
  {
    name: 'what a place says of a machine is a sentence for people, and nothing where there is nothing to say',
    async run(fixture) {
      const { provider, other } = fixture;
      const id = await provider.create(await firstOffer(fixture), spec(), 'key-1', {});
      const messageOf = async (): Promise<string | undefined> => {
        const status = (await other.inspect([id], {})).get(id);
        return status !== undefined && 'message' in status ? status.message : undefined;
      };
      ok((await messageOf())?.trim() !== '');
      await fixture.untilRunning(id);
      await fixture.preemptAll();
      ok((await messageOf())?.trim() !== '');
      await provider.destroy(id, {});
    },
  },
];
