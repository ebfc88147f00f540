import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { headOf } from '../../../test/support/http1-events.ts';
import { pickFrom, replicaSets } from '../../../test/support/replica-sets.ts';
import { seededRandom } from '../../shared/random.ts';
import { Board } from '../board/board.ts';
import type { ReplicaSet } from './replica-set.ts';
import type { Replica, SlottedReplica } from './replica.ts';

/** Replica `id` in its own slot. */
const aReplica = (id: number, version: number, share?: number, state: SlottedReplica['state'] = 'serving'): SlottedReplica => ({
  ...aBalancerReplica(id, id, { version, state, ...(share !== undefined && { share }) }),
  slot: id,
});

const requestWith = (...lines: readonly string[]) => headOf(`GET / HTTP/1.1\r\n${['Host: a', ...lines, '', ''].join('\r\n')}`);
const plain = requestWith();

/** Picks a replica and ends the attempt. */
function pick(set: ReplicaSet, request = plain, excluded: readonly Replica[] = [], version?: number): Replica {
  const { replica } = pickFrom(set, request, excluded, version);
  replica.endAttempt();
  return replica;
}

const versionsOf = (set: ReplicaSet, request = plain, count = 200): ReadonlySet<number> =>
  new Set(Array.from({ length: count }, () => pick(set, request).version));

function one(replicas: readonly SlottedReplica[], session?: { readonly cookie: string }) {
  const { sets } = replicaSets(replicas, session === undefined ? {} : { session });
  const [set] = sets;
  if (set === undefined) throw new Error('no set');
  return { set };
}

test.for([0.05, 0.25, 0.5])('four threads give a new version its share of %d exactly', (share) => {
  const replicas = [1, 2, 3, 4].map((id) => aReplica(id, 1, 1 - share));
  const { sets } = replicaSets([...replicas, aReplica(5, 2, share)], { board: Board.create(4) });
  const random = seededRandom(5);
  let newer = 0;
  for (let turn = 0; turn < 10_000; turn += 1) {
    const set = sets[Math.floor(random() * sets.length)];
    if (set !== undefined && pick(set).version === 2) newer += 1;
  }
  expect(Math.abs(newer / 10_000 - share)).toBeLessThanOrEqual(0.01 * share);
});

test('a set that changes with each request still gives a tiny share its turns', () => {
  const { set } = one([]);
  let newer = 0;
  for (let turn = 0; turn < 10_000; turn += 1) {
    set.apply([aReplica(1, 1, 0.99), aReplica(2, 2, 0.01), ...(turn % 2 === 0 ? [aReplica(3, 1, 0.99)] : [])]);
    if (pick(set).version === 2) newer += 1;
  }
  expect(Math.abs(newer - 100)).toBeLessThanOrEqual(2);
});

test('the policy chooses among the replicas of the version', () => {
  const { set } = one([aReplica(1, 1, 1), aReplica(2, 1, 1), aReplica(3, 1, 1), aReplica(4, 2, 0)]);
  const open = Array.from({ length: 9 }, () => pickFrom(set, plain, []).replica.id);
  expect([1, 2, 3, 4].map((id) => open.filter((other) => other === id).length)).toEqual([3, 3, 3, 0]);
});

test('without shares all replicas take part, whatever their version', () => {
  const { set } = one([aReplica(1, 1), aReplica(2, 2)]);
  expect(versionsOf(set)).toEqual(new Set([1, 2]));
});

test('share 0 gets requests only when no other version can take them', () => {
  const { set } = one([aReplica(1, 1, 1), aReplica(2, 2, 0)]);
  expect(versionsOf(set)).toEqual(new Set([1]));
  const stable = pick(set);
  set.avoid(stable, 1_000);
  expect(versionsOf(set)).toEqual(new Set([2]));
  set.apply([aReplica(2, 2, 0)]);
  expect(versionsOf(set)).toEqual(new Set([2]));
});

test('when all shares are 0, all replicas take part', () => {
  const { set } = one([aReplica(1, 1, 0), aReplica(2, 2, 0)]);
  expect(versionsOf(set)).toEqual(new Set([1, 2]));
});

test('while a version drains or is ejected, another version with a share takes its requests', () => {
  const { set } = one([aReplica(1, 1, 0.5), aReplica(2, 2, 0.5, 'draining'), aReplica(3, 3, 0)]);
  expect(versionsOf(set)).toEqual(new Set([1]));
  set.apply([aReplica(1, 1, 0.5), aReplica(2, 2, 0.5), aReplica(3, 3, 0)]);
  expect(versionsOf(set)).toEqual(new Set([1, 2]));
  const newer = [1, 2, 3].map(() => pick(set)).find(({ version }) => version === 2);
  for (let failure = 0; failure < 5; failure += 1) if (newer !== undefined) set.recordFailure(newer, false);
  expect(versionsOf(set)).toEqual(new Set([1]));
});

test('a retry goes to the same version first, then to any', () => {
  const { set } = one([aReplica(1, 1, 0.5), aReplica(2, 1, 0.5), aReplica(3, 2, 0.5), aReplica(4, 2, 0.5), aReplica(5, 3, 0)]);
  for (let turn = 0; turn < 50; turn += 1) {
    const first = pickFrom(set, plain, []);
    first.replica.endAttempt();
    const tried = [first.replica];
    for (let attempt = 1; attempt < 5; attempt += 1) tried.push(pick(set, plain, tried, first.version));
    const own = first.replica.version;
    expect(tried.map(({ version }) => version)).toEqual([own, own, 3 - own, 3 - own, 3]);
  }
});

test('a pinned request gets its version, also with share 0, without shares, and while it is ejected', () => {
  for (const share of [0, undefined]) {
    const { set } = one([aReplica(1, 1, share === undefined ? undefined : 1), aReplica(2, 2, share), aReplica(3, 2, share, 'draining')]);
    const pinned = requestWith('X-Svc-Version: 2');
    expect(versionsOf(set, pinned)).toEqual(new Set([2]));
    const newer = pick(set, pinned);
    for (let failure = 0; failure < 5; failure += 1) set.recordFailure(newer, false);
    expect(versionsOf(set, pinned)).toEqual(new Set([2]));
    expect(pick(set, pinned, [newer]).version).toBe(1);
    set.apply([aReplica(1, 1, share), aReplica(2, 2, share, 'draining')]);
    expect(versionsOf(set, pinned)).toEqual(new Set([1]));
  }
});

test('a session keeps its version as a share grows, and moves to the newer one at most once', () => {
  const session = { cookie: 'sid' };
  const { set } = one([], session);
  const steps = [0.05, 0.25, 0.5, 1].map((share) => {
    set.apply([aReplica(1, 1, 1 - share), aReplica(2, 2, share)]);
    return Array.from({ length: 300 }, (_, index) => {
      const seen = versionsOf(set, requestWith(`Cookie: sid=user${index}`), 5);
      expect(seen.size).toBe(1);
      return [...seen][0] ?? 0;
    });
  });
  for (const [index, first] of (steps[0] ?? []).entries()) {
    const versions = [first, ...steps.slice(1).map((step) => step[index] ?? 0)];
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    expect(versions.at(-1)).toBe(2);
  }
});
