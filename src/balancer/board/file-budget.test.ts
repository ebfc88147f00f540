import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Deadlines } from '../transport/deadlines.ts';
import { Board } from './board.ts';
import { FileBudget, type FileLimits } from './file-budget.ts';

interface World {
  readonly clock: FakeClock;
  readonly board: Board;
  readonly budgets: readonly FileBudget[];
}

/** The budgets of the threads of one balancer. */
function world(limits: FileLimits, threads = 1): World {
  const board = Board.create(threads);
  const clock = new FakeClock();
  const budgets = Array.from({ length: threads }, (_, thread) => new FileBudget({ board, thread }, limits, new Deadlines(clock)));
  return { clock, board, budgets };
}

function budgetOf(limits: FileLimits): FileBudget {
  const [budget] = world(limits).budgets;
  if (budget === undefined) throw new Error('no thread');
  return budget;
}

/** Opens requests on one connection until refused, up to `asked`. */
function openMany(budget: FileBudget, asked: number): number {
  let open = 0;
  while (open < asked && budget.openRequest(open)) open += 1;
  return open;
}

const limits = { files: 864, connections: 432 };

test('connections that open all they may get equal shares, with one share kept free', () => {
  const budget = budgetOf(limits);
  budget.setClients(4);
  const open = [0, 0, 0, 0];
  for (let round = 0; round < 250; round += 1)
    for (const [index, count] of open.entries()) if (budget.openRequest(count)) open[index] = count + 1;
  // 216 extra requests: five parts of 43 or 44 each, and the first request of each connection.
  expect(open.toSorted((a, b) => a - b)).toEqual([44, 44, 44, 45]);
  expect(openMany(budget, 250)).toBeGreaterThan(20);
});

test('a connection may always have one request, however many the others have', () => {
  const budget = budgetOf(limits);
  budget.setClients(200);
  for (let connection = 0; connection < 200; connection += 1) openMany(budget, 250);
  expect(budget.openRequest(1)).toBe(false);
  expect(budget.openRequest(0)).toBe(true);
});

test('extra requests leave three eighths of the files for clients with one request each', () => {
  const budget = budgetOf(limits);
  budget.setClients(1);
  for (let connection = 0; connection < 200; connection += 1) openMany(budget, 250);
  let clients = 1;
  while (budget.hasRoomForClient) budget.setClients((clients += 1));
  expect(clients).toBe(324);
});

test('without extra requests clients get half of the files, up to the configured maximum', () => {
  const budget = budgetOf({ files: 864, connections: 100 });
  budget.setClients(99);
  expect(budget.hasRoomForClient).toBe(true);
  budget.setClients(100);
  expect(budget.hasRoomForClient).toBe(false);
});

test('ended requests free their files', () => {
  const budget = budgetOf(limits);
  budget.setClients(1);
  const begun = openMany(budget, 250);
  expect(openMany(budget, 250)).toBeLessThan(begun);
  for (let open = begun - 1; open >= 0; open -= 1) budget.closeRequest(open);
  expect(openMany(budget, 250)).toBeGreaterThan(1);
});

test('as many requests may wait as there may be extra requests', () => {
  const budget = budgetOf(limits);
  let waiting = 0;
  while (budget.beginWait(0)) waiting += 1;
  expect(waiting).toBe(216);
  budget.endWait();
  expect([budget.beginWait(0), budget.beginWait(0)]).toEqual([true, false]);
});

test('one connection gets half of the places to wait', () => {
  const budget = budgetOf(limits);
  let own = 0;
  while (budget.beginWait(own)) own += 1;
  expect(own).toBe(108);
  expect(budget.beginWait(0)).toBe(true);
});

test('without a free file a replica connection replaces an idle one, or is refused', () => {
  const budget = budgetOf({ files: 4, connections: 2 });
  let idle = 1;
  budget.closeIdle = () => {
    if (idle === 0) return false;
    idle -= 1;
    budget.closeReplicaConnection();
    return true;
  };
  for (let opened = 0; opened < 4; opened += 1) expect(budget.openReplicaConnection()).toBe(true);
  expect([budget.openReplicaConnection(), idle]).toEqual([true, 0]);
  let overshoot = 0;
  while (budget.openReplicaConnection()) overshoot += 1;
  // Until another thread has closed its idle connections.
  expect(overshoot).toBe(16);
});

test('a shortage in one thread makes other threads close their idle connections', async () => {
  const { clock, budgets } = world({ files: 2, connections: 1 }, 2);
  const [one, two] = budgets;
  let idle = 2;
  if (two !== undefined) two.closeIdle = () => (idle > 0 ? ((idle -= 1), true) : false);
  for (let opened = 0; opened < 2; opened += 1) one?.openReplicaConnection();
  await clock.advance(1_000);
  expect(idle).toBe(2);
  one?.openReplicaConnection();
  await clock.advance(1_000);
  expect(idle).toBe(0);
});

test('clearing a dead thread releases its files', () => {
  const { board, budgets } = world(limits, 2);
  budgets[0]?.setClients(432);
  expect(budgets[1]?.hasRoomForClient).toBe(false);
  board.clearThread(0);
  expect(budgets[1]?.hasRoomForClient).toBe(true);
});
