import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { headOf } from '../../../test/support/http1-events.ts';
import { pickFrom, replicaSets } from '../../../test/support/replica-sets.ts';
import { Board } from '../board/board.ts';
import { createPolicy, type Policy } from '../policy/policies.ts';
import type { Replica, SlottedReplica } from './replica.ts';
import type { ReplicaSet } from './replica-set.ts';
import { seededRandom } from '../../shared/random.ts';

/** The sets of several threads with as many equal replicas. */
function threadsWith(threads: number, replicas: number, board = Board.create(threads), policy = createPolicy('least_load')) {
  const slotted = Array.from({ length: replicas }, (_, slot) => ({ ...aBalancerReplica(slot + 1, slot + 1), slot }));
  const { clock, sets } = replicaSets(slotted, { board, policy });
  return { board, clock, sets };
}

const plain = headOf('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
const pick = (set: ReplicaSet | undefined, request = plain) => pickFrom(set, request, []);

/** Pearson's statistic of counts that should all be equal. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

test('a policy sees the head of the request', () => {
  const byPath: Policy = { name: 'least_load', select: (_candidates, { path }) => Number(path.slice(1)) };
  const { sets } = threadsWith(1, 4, Board.create(1), byPath);
  const ids = [2, 0, 3].map((index) => pick(sets[0], headOf(`GET /${index} HTTP/1.1\r\nHost: a\r\n\r\n`)).replica.id);
  expect(ids).toEqual([3, 1, 4]);
});

test('threads that pick in any order keep replica counts within one request', () => {
  const { sets } = threadsWith(4, 5);
  const random = seededRandom(3);
  const open: Replica[] = [];
  const loads = (): readonly number[] => [...new Set(open)].map((replica) => replica.inFlight);
  for (let turn = 0; turn < 2_000; turn += 1) {
    const { replica, load } = pick(sets[Math.floor(random() * 4)]);
    open.push(replica);
    expect(replica.inFlight).toBe(load + 1);
  }
  expect(Math.max(...loads()) - Math.min(...loads())).toBe(0);
  for (const replica of open) replica.endAttempt();
  expect(new Set(loads())).toEqual(new Set([0]));
});

test('equal replicas get the same share over all threads', () => {
  const { sets } = threadsWith(3, 4);
  const random = seededRandom(9);
  const counts = [0, 0, 0, 0];
  for (let turn = 0; turn < 8_000; turn += 1) {
    const { replica } = pick(sets[Math.floor(random() * 3)]);
    counts[replica.slot] = (counts[replica.slot] ?? 0) + 1;
    replica.endAttempt();
  }
  // 16.27: three degrees of freedom, p = 0.001.
  expect(chiSquare(counts)).toBeLessThan(16.27);
});

/** Memory in which another thread makes a choice each time this thread is about to. */
class BusyBoard extends Board {
  interruptions = 0;

  override advance(generation: number): boolean {
    if (this.interruptions > 0) {
      this.interruptions -= 1;
      super.advance(generation);
    }
    return super.advance(generation);
  }
}

test('a choice overtaken by another thread is repeated, and its first count undone', () => {
  const board = new BusyBoard(Board.create(2).memory);
  const { sets } = threadsWith(2, 3, board);
  board.interruptions = 3;
  const { replica } = pick(sets[0]);
  const total = (): number => [0, 1, 2].reduce((sum, slot) => sum + board.sumOfRows(board.rowCell('inFlight', 0, slot)), 0);
  expect([replica.inFlight, total()]).toEqual([1, 1]);
  // Under any contention, a choice is made in the end.
  board.interruptions = 1_000;
  pick(sets[0]);
  expect(total()).toBe(2);
});

test('when the count of choices wraps around, replicas still take turns', () => {
  const { board, sets } = threadsWith(1, 2);
  Atomics.store(board.cells, 0, 0x7f_ff_ff_fe);
  const taken = Array.from({ length: 6 }, () => {
    const { replica } = pick(sets[0]);
    replica.endAttempt();
    return replica.id;
  });
  expect(taken.slice(2)).toEqual([taken[0], taken[1], taken[0], taken[1]]);
});

test('a failure seen by one thread keeps all threads away from the replica', async () => {
  const { clock, sets } = threadsWith(2, 4);
  const [first, second] = sets;
  const { replica } = pick(first);
  replica.endAttempt();
  for (let failure = 0; failure < 5; failure += 1) first?.recordFailure(replica, false);
  const idsOf = (set: ReplicaSet | undefined): ReadonlySet<number> =>
    new Set(
      Array.from({ length: 20 }, () => {
        const { replica: taken } = pick(set);
        taken.endAttempt();
        return taken.id;
      }),
    );
  expect(idsOf(second)).not.toContain(replica.id);
  await clock.advance(11_000);
  expect(idsOf(second)).toContain(replica.id);
});

test('clearing a dead thread leaves no count behind', () => {
  const { board, sets } = threadsWith(2, 2);
  const kept = pick(sets[0]).replica;
  for (let turn = 0; turn < 5; turn += 1) pick(sets[1]).replica.recordAwaited();
  board.clearThread(1);
  expect([0, 1].map((slot) => board.sumOfRows(board.rowCell('inFlight', 0, slot)))).toEqual(kept.slot === 0 ? [1, 0] : [0, 1]);
  expect(board.sumOfRows(board.rowCell('unanswered', 0, 0))).toBe(0);
});

test('two threads that eject at once eject no more than half of the replicas', () => {
  const board = Board.create(2);
  const { sets, clock } = threadsWith(2, 2, board);
  const [first, second] = sets.map((set) => {
    const { replica } = pick(set);
    for (let count = 0; count < 4; count += 1) set.recordFailure(replica, false);
    return replica;
  });
  if (first === undefined || second === undefined) throw new Error('nothing was picked');
  const advance = board.advance.bind(board);
  let isOtherEjected: boolean | undefined;
  board.advance = (generation) => {
    board.advance = advance;
    // The other thread has counted and ejected since this one counted.
    isOtherEjected = sets[1]?.recordFailure(second, false);
    return advance(generation);
  };
  expect([first.id === second.id, sets[0]?.recordFailure(first, false), isOtherEjected]).toEqual([false, true, false]);
  expect([first, second].filter(({ health }) => health.isEjected(clock.monotonic()))).toHaveLength(1);
});

/** Sets whose replicas take two requests each. */
function limitedTo2(threads: number, states: readonly Partial<SlottedReplica>[]) {
  const slotted = states.map((state, slot) => ({ ...aBalancerReplica(slot + 1, slot + 1), ...state, slot }));
  return replicaSets(slotted, { board: Board.create(threads), policy: createPolicy('round_robin'), maxConnectionsPerReplica: 2 });
}

test('no replica gets more requests than it may have, in all threads together', () => {
  const { sets } = limitedTo2(2, [{}, {}]);
  const open = [pick(sets[0]), pick(sets[1]), pick(sets[0]), pick(sets[1])];
  expect(open.map(({ replica }) => replica.id).toSorted((a, b) => a - b)).toEqual([1, 1, 2, 2]);
  expect(sets.map((set) => set.pick(plain, []))).toEqual(['full', 'full']);
  open[2]?.replica.endAttempt();
  expect(pick(sets[1]).replica.id).toBe(open[2]?.replica.id);
});

test('requests wait for room rather than go to a replica that is ejected', () => {
  const { sets } = limitedTo2(1, [{}, {}]);
  const [set] = sets;
  const bad = pick(set).replica;
  for (let count = 0; count < 5; count += 1) set?.recordFailure(bad, false);
  bad.endAttempt();
  expect([pick(set), pick(set)].map(({ replica }) => replica.id)).toEqual([3 - bad.id, 3 - bad.id]);
  expect(set?.pick(plain, [])).toBe('full');
});

test('a full version gives its turns to another', () => {
  const { sets } = limitedTo2(1, [
    { version: 1, share: 0.9 },
    { version: 2, share: 0.1 },
  ]);
  expect(Array.from({ length: 4 }, () => pick(sets[0]).replica.version).toSorted((a, b) => a - b)).toEqual([1, 1, 2, 2]);
});

test('a version of share 0 gets nothing because the others are full', () => {
  const { sets } = limitedTo2(1, [
    { version: 1, share: 1 },
    { version: 2, share: 0 },
  ]);
  expect(Array.from({ length: 2 }, () => pick(sets[0]).replica.version)).toEqual([1, 1]);
  expect(sets[0]?.pick(plain, [])).toBe('full');
});

test('a request whose own exclusions leave only full replicas does not make others wait', () => {
  const { sets } = limitedTo2(1, [{}, {}]);
  const [set] = sets;
  const open = [pick(set), pick(set), pick(set)];
  const [full] = open.filter(({ replica }) => replica.inFlight === 2);
  const free = open.find(({ replica }) => replica !== full?.replica);
  if (free === undefined) throw new Error('both are full');
  expect(set?.pick(plain, [free.replica])).toBeUndefined();
});
