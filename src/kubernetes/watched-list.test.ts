import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { KubeEvent, KubeList, KubeListOptions, KubeObject, KubeWatch, KubeWatchEnd } from './kube-api.ts';
import { WatchedList } from './watched-list.ts';

function anObject(name: string, resourceVersion: string, uid = `uid-${name}`): KubeObject {
  return { metadata: { name, namespace: 'default', uid, resourceVersion } };
}

/** An API server whose answers a test releases one by one. */
class ScriptedCollection {
  readonly clock = new FakeClock();
  readonly abort = new AbortController();
  readonly asked: string[] = [];
  readonly reported: string[] = [];
  readonly trouble: (string | undefined)[] = [];
  /** Whether the server answers watches at all. */
  isTaken = true;
  lists: (KubeList<KubeObject> | Error)[] = [];
  watches: (KubeWatchEnd | Error)[] = [];
  #open: { readonly watch: KubeWatch<KubeObject>; readonly end: (end: KubeWatchEnd) => void } | undefined;

  start(keep?: (object: KubeObject) => KubeObject): WatchedList<KubeObject> {
    const api = {
      list: async <T extends KubeObject>(_path: string, options?: KubeListOptions<T>): Promise<KubeList<T>> => {
        const next = this.lists.length > 1 ? this.lists.shift() : this.lists[0];
        this.asked.push('list');
        if (next === undefined || next instanceof Error) throw next ?? new Error('no list');
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test's only kind
        const { items, resourceVersion } = next as KubeList<T>;
        return { items: items.map((item) => options?.keep?.(item) ?? item), resourceVersion };
      },
      watch: <T extends KubeObject>(_path: string, watch: KubeWatch<T>): Promise<KubeWatchEnd> => {
        this.asked.push(`watch ${watch.resourceVersion}`);
        const next = this.watches.shift();
        if (next instanceof Error) {
          if (this.isTaken) watch.onOpen?.();
          return Promise.reject(next);
        }
        if (next !== undefined) return Promise.resolve(next);
        const { promise, resolve } = Promise.withResolvers<KubeWatchEnd>();
        watch.signal.addEventListener('abort', () => resolve({ how: 'aborted' }));
        if (this.isTaken) watch.onOpen?.();
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test's only kind
        this.#open = { watch: watch as unknown as KubeWatch<KubeObject>, end: resolve };
        return promise;
      },
    };
    const list = new WatchedList<KubeObject>(
      '/api/v1/configmaps',
      {},
      {
        api,
        clock: this.clock,
        random: () => 1,
        signal: this.abort.signal,
        keep,
        onTrouble: (why) => this.trouble.push(why),
      },
    );
    list.onChange((changes) => this.reported.push(changes.map(({ before, after }) => `${textOf(before)}->${textOf(after)}`).join(' ')));
    return list;
  }

  /** Sends all events in one read. */
  send(...events: readonly (readonly [KubeEvent<KubeObject>['type'], KubeObject])[]): void {
    for (const [type, object] of events) this.#open?.watch.onEvent({ type, object });
  }

  async endWatch(end: KubeWatchEnd): Promise<void> {
    this.#open?.end(end);
    await this.clock.settle();
  }
}

function textOf(object: KubeObject | undefined): string {
  return object === undefined ? '-' : `${object.metadata.name}${object.metadata.resourceVersion}`;
}

const failed: KubeWatchEnd = { how: 'failed', reason: 'connect ECONNREFUSED' };

test('a collection is listed, watched from that version, and kept current', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [anObject('a', '1')], resourceVersion: '5' }];
  const list = server.start();
  expect(list.lastSeenAt).toBeUndefined();
  await list.synced;
  await server.clock.settle();
  expect(list.items.map(textOf)).toEqual(['a1']);
  server.send(
    ['ADDED', anObject('b', '6')],
    ['MODIFIED', anObject('a', '7')],
    ['MODIFIED', anObject('a', '8')],
    ['BOOKMARK', anObject('', '9')],
  );
  await server.clock.settle();
  server.send(['DELETED', anObject('b', '10')]);
  await server.clock.settle();
  expect(server.reported).toEqual(['-->a1', '-->b6 a1->a8', 'b6->-']);
  expect(list.items.map(textOf)).toEqual(['a8']);
  await server.endWatch({ how: 'ended' });
  expect(server.asked).toEqual(['list', 'watch 5', 'watch 10']);
  server.abort.abort();
  await list.ended;
  expect(server.clock.pendingTimers).toBe(0);
});

test('after an expired version the list is read again and changes are reported', async () => {
  const server = new ScriptedCollection();
  server.lists = [
    { items: [anObject('a', '1'), anObject('b', '2'), anObject('c', '3')], resourceVersion: '5' },
    { items: [anObject('a', '1'), anObject('b', '8'), anObject('c', '9', 'another'), anObject('d', '10')], resourceVersion: '20' },
  ];
  const list = server.start();
  await list.synced;
  await server.clock.settle();
  await server.endWatch({ how: 'expired', reason: 'too old' });
  expect(server.reported.slice(1)).toEqual(['b2->b8 c3->c9 -->d10']);
  expect(server.asked).toEqual(['list', 'watch 5', 'list', 'watch 20']);
  expect(server.trouble).toEqual([]);
  server.abort.abort();
});

test('objects removed during an outage are reported as removed', async () => {
  const server = new ScriptedCollection();
  server.lists = [
    { items: [anObject('a', '1'), anObject('b', '2')], resourceVersion: '5' },
    new Error('connect ECONNREFUSED'),
    new Error('connect ECONNREFUSED'),
    { items: [anObject('b', '2')], resourceVersion: '30' },
  ];
  const list = server.start();
  await list.synced;
  await server.clock.settle();
  server.watches = [failed];
  await server.endWatch(failed);
  const tookMs = await server.clock.advanceUntil(() => server.asked.at(-1) === 'watch 30');
  expect(server.reported.slice(1)).toEqual(['a1->-']);
  expect(list.items.map(textOf)).toEqual(['b2']);
  expect(tookMs).toBeLessThan(10_000);
  expect(server.trouble).toEqual(['connect ECONNREFUSED']);
  await server.clock.advance(3_000);
  expect(server.trouble).toEqual(['connect ECONNREFUSED', undefined]);
  server.abort.abort();
});

test('one broken connection is no outage: the watch continues from the last version', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  await server.start().synced;
  await server.clock.settle();
  server.send(['ADDED', anObject('a', '6')]);
  await server.endWatch(failed);
  await server.clock.advance(200);
  expect(server.asked).toEqual(['list', 'watch 5', 'watch 6']);
  expect(server.trouble).toEqual([]);
  server.abort.abort();
});

test('a server that accepts connections but never answers is an outage', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  await server.start().synced;
  server.isTaken = false;
  await server.clock.settle();
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await server.endWatch({ how: 'failed', reason: 'no answer within 30 s' });
    await server.clock.advance(30_000);
  }
  expect(server.trouble).toEqual(['no answer within 30 s']);
  server.abort.abort();
});

test('an outage after expired versions is reported; only a reported outage ends', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  server.watches = [{ how: 'expired' }, { how: 'expired' }, failed];
  server.start();
  await server.clock.advance(60_000);
  expect(server.trouble).toEqual(['connect ECONNREFUSED', undefined]);
  server.abort.abort();

  const busy = new ScriptedCollection();
  busy.lists = server.lists;
  busy.watches = [{ how: 'expired' }, { how: 'expired' }];
  busy.start();
  await busy.clock.advance(60_000);
  expect(busy.trouble).toEqual([]);
  busy.abort.abort();
});

test('an unreachable server is retried every five seconds at most', async () => {
  const server = new ScriptedCollection();
  server.lists = [new Error('down')];
  const list = server.start();
  await server.clock.advance(60_000);
  const before = server.asked.length;
  await server.clock.advance(60_000);
  expect(server.asked.length - before).toBe(12);
  expect(server.trouble).toEqual(['down']);
  expect(list.lastSeenAt).toBeUndefined();
  expect(list.lastSeenAt).toBeUndefined();
  server.abort.abort();
});

test('permission to list but not watch causes no immediate relists', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  server.watches = Array.from({ length: 1_000 }, () => ({ how: 'failed', reason: 'forbidden' }));
  server.start();
  await server.clock.advance(60_000);
  expect(server.asked.length).toBeLessThan(50);
  server.abort.abort();
});

test('permanently expired versions cause no immediate relists', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  server.watches = Array.from({ length: 1_000 }, () => ({ how: 'expired' }));
  server.start();
  await server.clock.advance(60_000);
  expect(server.asked.length).toBeLessThan(50);
  server.abort.abort();
});

test('watches that end immediately are an outage with backoff; a single one is not', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  server.watches = Array.from({ length: 1_000 }, () => ({ how: 'ended' }));
  server.start();
  await server.clock.advance(60_000);
  expect(server.asked.length).toBeLessThan(50);
  expect(server.trouble).toEqual(['watches end as soon as they begin']);
  server.abort.abort();

  const once = new ScriptedCollection();
  once.lists = server.lists;
  once.watches = [{ how: 'ended' }];
  once.start();
  await once.clock.advance(60_000);
  expect({ asked: once.asked, trouble: once.trouble }).toEqual({ asked: ['list', 'watch 5', 'watch 5'], trouble: [] });
  once.abort.abort();
});

test('a list without a version is retried', async () => {
  const server = new ScriptedCollection();
  server.lists = [
    { items: [anObject('a', '1')], resourceVersion: '' },
    { items: [], resourceVersion: '5' },
  ];
  const list = server.start();
  await server.clock.advance(1_000);
  expect(list.items).toEqual([]);
  expect(server.asked).toEqual(['list', 'list', 'watch 5']);
  server.abort.abort();
});

test("lastSeenAt is the time of the server's last confirmation", async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  const list = server.start();
  await list.synced;
  const listedAt = list.lastSeenAt ?? 0;
  await server.clock.advance(25_000);
  expect(list.lastSeenAt).toBe(listedAt);
  server.send(['BOOKMARK', anObject('', '9')]);
  expect(list.lastSeenAt).toBe(listedAt + 25_000);
  await server.clock.advance(5_000);
  await server.endWatch({ how: 'ended' });
  expect(list.lastSeenAt).toBe(listedAt + 30_000);
  server.abort.abort();
});

test('a closed fence ends the watched list', async () => {
  const server = new ScriptedCollection();
  server.lists = [{ items: [], resourceVersion: '5' }];
  server.watches = [new SvcError('SVC_NOT_LEADER', 'the lease has run out')];
  await expect(server.start().ended).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
  expect(server.clock.pendingTimers).toBe(0);
  server.lists = [new SvcError('SVC_NOT_LEADER', 'the lease has run out')];
  await expect(server.start().ended).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
});

function labelled(name: string, version: string): KubeObject {
  const object = anObject(name, version);
  return { ...object, metadata: { ...object.metadata, labels: { a: 'b' } } };
}

test('keep reduces objects of the list and of watch events', async () => {
  const world = new ScriptedCollection();
  world.lists = [{ items: [labelled('a', '1')], resourceVersion: '5' }];
  const list = world.start(({ metadata: { name, uid, resourceVersion } }) => ({ metadata: { name, uid, resourceVersion } }));
  await world.clock.settle();
  world.send(['ADDED', labelled('b', '6')]);
  expect(list.items.map(({ metadata }) => Object.keys(metadata).join())).toEqual(Array(2).fill('name,uid,resourceVersion'));
});
