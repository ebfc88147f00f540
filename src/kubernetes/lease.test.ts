import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import type { KubeDraft, KubeObject } from './kube-api.ts';
import { kubernetesLease, readKubernetesLease } from './lease.ts';

const { signal } = new AbortController();

/** Keeps one object, with versions as an API server assigns them. */
class OneObject {
  object: (KubeObject & Readonly<Record<string, unknown>>) | undefined;
  #version = 100;
  createdAt = '2030-01-01T12:00:00Z';

  get<T extends KubeObject>(): Promise<T | undefined> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test's only kind
    return Promise.resolve(this.object as T | undefined);
  }

  create<T extends KubeObject>(_path: string, draft: KubeDraft): Promise<T | undefined> {
    if (this.object !== undefined) return Promise.resolve(undefined);
    this.#put({ ...draft, metadata: { ...draft.metadata, uid: 'u', resourceVersion: '', creationTimestamp: this.createdAt } });
    return this.get<T>();
  }

  replace<T extends KubeObject>(_path: string, object: T): Promise<T | undefined> {
    if (this.object?.metadata.resourceVersion !== object.metadata.resourceVersion) return Promise.resolve(undefined);
    this.#put({ ...Object.fromEntries(Object.entries(object)), metadata: object.metadata });
    return this.get<T>();
  }

  change(fields: Readonly<Record<string, unknown>>): void {
    if (this.object !== undefined) this.#put({ ...this.object, ...fields });
  }

  #put(object: KubeObject & Readonly<Record<string, unknown>>): void {
    this.#version += 1;
    this.object = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
  }
}

test('the first holder creates the lease, renews it and keeps its term', async () => {
  const server = new OneObject();
  const clock = new FakeClock();
  const lock = kubernetesLease(server, 'svc', 'controller', clock);
  const never = await lock.read(signal);
  expect(never).toMatchObject({ holder: null, term: 0 });
  const first = await lock.write(never, 'a', 8_000, signal);
  expect(first).toMatchObject({ holder: 'a', durationMs: 8_000 });
  expect(server.object).toMatchObject({
    kind: 'Lease',
    spec: { holderIdentity: 'a', leaseDurationSeconds: 8, leaseTransitions: 1, acquireTime: '2030-01-01T12:00:00.000000Z' },
  });
  await clock.advance(2_000);
  const second = await lock.write(first ?? never, 'a', 8_000, signal);
  expect(second?.term).toBe(first?.term);
  expect(second?.renewal).not.toBe(first?.renewal);
  expect(server.object).toMatchObject({
    spec: { leaseTransitions: 1, acquireTime: '2030-01-01T12:00:00.000000Z', renewTime: '2030-01-01T12:00:02.000000Z' },
  });
});

test('of two concurrent writers only one gets the lease, with the next term', async () => {
  const server = new OneObject();
  const [a, b, c] = ['a', 'b', 'c'].map(() => kubernetesLease(server, 'svc', 'controller', new FakeClock()));
  if (a === undefined || b === undefined || c === undefined) throw new Error('three were made');
  const held = await a.write(await a.read(signal), 'a', 8_000, signal);
  const seenByB = await b.read(signal);
  const seenByC = await c.read(signal);
  expect(await b.write(seenByB, 'b', 8_000, signal)).toMatchObject({ holder: 'b', term: (held?.term ?? 0) + 1 });
  expect(await c.write(seenByC, 'c', 8_000, signal)).toBeUndefined();
  expect(await a.write(held ?? seenByB, 'a', 8_000, signal)).toBeUndefined();
  expect(await a.read(signal)).toMatchObject({ holder: 'b' });
});

test('a write based on a view older than the last read is rejected', async () => {
  const server = new OneObject();
  const lock = kubernetesLease(server, 'svc', 'controller', new FakeClock());
  const held = await lock.write(await lock.read(signal), 'a', 8_000, signal);
  server.change({ spec: { holderIdentity: 'b', leaseTransitions: 2, leaseDurationSeconds: 8 } });
  await lock.read(signal);
  expect(await lock.write(held ?? (await lock.read(signal)), 'a', 8_000, signal)).toBeUndefined();
});

test('the term never decreases, even after the lease was deleted', async () => {
  const server = new OneObject();
  const lock = kubernetesLease(server, 'svc', 'controller', new FakeClock());
  let view = await lock.write(await lock.read(signal), 'a', 8_000, signal);
  for (const holder of ['b', 'c', 'd']) view = await lock.write(view ?? (await lock.read(signal)), holder, 8_000, signal);
  const before = view?.term ?? 0;
  server.object = undefined;
  server.createdAt = '2030-01-01T12:01:00Z';
  expect(await lock.write(view ?? (await lock.read(signal)), 'd', 8_000, signal)).toBeUndefined();
  const anew = await lock.write(await lock.read(signal), 'e', 8_000, signal);
  expect(anew?.term).toBeGreaterThan(before);
});

test('a released lease keeps its millisecond duration although Kubernetes counts in seconds', async () => {
  const server = new OneObject();
  const lock = kubernetesLease(server, 'svc', 'controller', new FakeClock());
  const held = await lock.write(await lock.read(signal), 'a', 8_000, signal);
  const released = await lock.write(held ?? (await lock.read(signal)), 'a', 1, signal);
  expect(released?.durationMs).toBe(1);
  expect(server.object).toMatchObject({ spec: { leaseDurationSeconds: 1 } });
  // Another program, which does not know the annotation.
  server.change({ spec: { holderIdentity: 'kubectl', leaseTransitions: 9, leaseDurationSeconds: 15 } });
  expect(await lock.read(signal)).toMatchObject({ holder: 'kubectl', durationMs: 15_000 });
});

test('an empty holder can be replaced, and fields of other programs are kept', async () => {
  const server = new OneObject();
  const lock = kubernetesLease(server, 'svc', 'controller', new FakeClock());
  await lock.write(await lock.read(signal), 'a', 8_000, signal);
  server.change({ spec: { holderIdentity: '', leaseTransitions: 4 }, status: 'theirs' });
  const seen = await lock.read(signal);
  expect(seen.holder).toBeNull();
  expect(await lock.write(seen, 'b', 8_000, signal)).toMatchObject({ holder: 'b', term: seen.term + 1 });
  expect(server.object).toMatchObject({ status: 'theirs' });
});

test('a renewal repairs an edited transition count, and the maximum blocks no takeover', async () => {
  const server = new OneObject();
  const lock = kubernetesLease(server, 'svc', 'controller', new FakeClock());
  const held = await lock.write(await lock.read(signal), 'a', 8_000, signal);
  if (held === undefined) throw new Error('not taken');
  server.change({ spec: { holderIdentity: 'a', leaseTransitions: 0, leaseDurationSeconds: 8 } });
  const edited = await lock.read(signal);
  expect(edited.term).toBe(held.term - 1);
  expect(await lock.write({ ...edited, term: held.term }, 'a', 8_000, signal)).toMatchObject({ term: held.term });
  expect(server.object).toMatchObject({ spec: { leaseTransitions: 1 } });

  server.change({ spec: { holderIdentity: 'a', leaseTransitions: 2_147_483_647, leaseDurationSeconds: 8 } });
  await lock.write(await lock.read(signal), 'b', 8_000, signal);
  expect(server.object).toMatchObject({ spec: { holderIdentity: 'b', leaseTransitions: 2_147_483_647 } });
});

test('readKubernetesLease returns the same view as the lock', async () => {
  const server = new OneObject();
  const lock = kubernetesLease(server, 'svc', 'controller', new FakeClock());
  expect(await readKubernetesLease(server, 'svc', 'controller', signal)).toEqual(await lock.read(signal));
  await lock.write(await lock.read(signal), 'a', 8_000, signal);
  expect(await readKubernetesLease(server, 'svc', 'controller', signal)).toMatchObject({ holder: 'a', durationMs: 8_000 });
  expect(await readKubernetesLease(server, 'svc', 'controller', signal)).toEqual(await lock.read(signal));
});
