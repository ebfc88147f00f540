import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import type { Resources } from '../domain/task.ts';
import type { Remote } from '../remote/remote.ts';
import { systemClock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { isMachineId, type MachineId, type MachineSpec, type Offer, type Provider } from './provider.ts';

/** A provider prepared for the suite. */
export interface ProviderFixture {
  readonly provider: Provider;
  /** The same provider as another process would open it. */
  readonly other: Provider;
  readonly resources: Resources;
  /** From now on the provider has no capacity. */
  refuse(): Promise<void>;
  preemptAll(): Promise<void>;
  untilRunning(id: MachineId): Promise<void>;
}

/** A behaviour of every provider. Fails by throwing. */
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
  providerConfig: {},
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

/** Fails after a while: providers report changes with a delay. */
async function until(isSo: () => boolean, what: string): Promise<void> {
  for (let attempt = 0; attempt < untilAttempts && !isSo(); attempt += 1) await systemClock.sleep(untilPauseMs);
  ok(isSo(), what);
}

/** Only this suite writes this file. */
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

/** A new provider must pass all of it. Each case gets a provider of its own. */
export const providerCases: readonly ProviderCase[] = [
  {
    name: 'check reports in one line whether the provider is usable',
    async run({ provider }) {
      const { enabled, summary } = await provider.check({});
      strictEqual(enabled, true);
      ok(summary !== '' && !summary.includes('\n'));
    },
  },
  {
    name: 'stop and start exist exactly when stopResume is true',
    async run({ provider }) {
      const { stopResume } = provider.capabilities;
      deepStrictEqual([typeof provider.stop === 'function', typeof provider.start === 'function'], [stopResume, stopResume]);
    },
  },
  {
    name: 'offers are its own, satisfy the request, and are sorted by price',
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
    name: 'without offers, whyNone is a sentence that names the request',
    async run({ provider, resources }) {
      const { offers, whyNone } = await provider.offers({ ...resources, accelerator: { name: 'NoSuchGpu', count: 3 } }, {});
      strictEqual(offers.length, 0);
      ok(whyNone?.includes('NoSuchGpu'), whyNone);
      ok(whyNone?.endsWith('.'), whyNone);
    },
  },
  {
    name: 'a created machine runs and is listed with its tags',
    async run(fixture) {
      const id = await create(fixture, 'key-1', { 'svc-replica': '1' });
      strictEqual(await stateOf(fixture.provider, id), 'running');
      deepStrictEqual(await fixture.provider.list({ 'svc-replica': '1' }, {}), [
        { id, tags: { 'svc-service': 'chat', 'svc-replica': '1' } },
      ]);
    },
  },
  {
    name: 'two creates with one key give one machine, also across processes',
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
    name: 'concurrent creates give one machine per key',
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
    name: 'one inspect of many machines returns the state of each',
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
    name: 'a destroyed machine is gone and unlisted; destroying again or an unknown machine succeeds',
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
    name: 'concurrent destroys from two processes both succeed',
    async run(fixture) {
      const id = await create(fixture, 'key-1');
      await Promise.all([fixture.provider.destroy(id, {}), fixture.other.destroy(id, {})]);
      ok((await stateOf(fixture.provider, id))?.startsWith('gone'));
    },
  },
  {
    name: 'list returns the machines that have all given tags',
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
    name: 'a provider without capacity refuses with kind capacity and creates nothing',
    async run(fixture) {
      const offer = await firstOffer(fixture);
      await fixture.refuse();
      await rejects(fixture.provider.create(offer, spec(), 'key-1', {}), (error) => error instanceof SvcError && error.kind === 'capacity');
      deepStrictEqual(await fixture.provider.list({}, {}), []);
    },
  },
  {
    name: 'a create with a known key returns its machine even without capacity',
    async run(fixture) {
      const offer = await firstOffer(fixture);
      const id = await fixture.provider.create(offer, spec(), 'key-1', {});
      await fixture.refuse();
      strictEqual(await fixture.other.create(offer, spec(), 'key-1', {}), id);
    },
  },
  {
    name: 'a preempted machine stays preempted until it is destroyed',
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
    name: 'a call cancelled before it began does nothing',
    async run(fixture) {
      const offer = await firstOffer(fixture);
      const signal = AbortSignal.abort();
      await rejects(fixture.provider.create(offer, spec(), 'key-1', { signal }));
      await rejects(fixture.provider.offers(fixture.resources, { signal }));
      deepStrictEqual(await fixture.provider.list({}, {}), []);
    },
  },
  {
    name: 'a multi-node machine lists its nodes by rank, and remote is the first',
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
    name: 'a watcher is notified of a preemption until its signal aborts',
    async run(fixture) {
      const { provider } = fixture;
      if (provider.watch === undefined) return;
      const id = await create(fixture, 'key-1');
      const over = new AbortController();
      let notifications = 0;
      provider.watch(() => (notifications += 1), over.signal);
      await fixture.preemptAll();
      await until(() => notifications > 0, 'no watcher was notified');
      ok((await stateOf(provider, id))?.startsWith('gone'));
      over.abort();
      await provider.destroy(id, {});
      // A watch whose signal had aborted before it began never gets a call.
      provider.watch(() => ok(false, 'notified although its signal had aborted'), over.signal);
    },
  },
  {
    name: 'a status message is a sentence or absent, never empty',
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
