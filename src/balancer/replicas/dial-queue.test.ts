import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { DialError, type DialDone } from '../../shared/system/dial.ts';
import { DialQueue } from './dial-queue.ts';

const aSocket = new Socket();

/** A queue with two connects at once; a test ends those in `open` itself. `ended` has the outcome of each request. */
function aQueue() {
  const clock = new FakeClock();
  const open: DialDone[] = [];
  const cancelled: DialDone[] = [];
  const ended: string[] = [];
  const queue = new DialQueue({
    clock,
    most: 2,
    waitMs: 5_000,
    dial: (done) => {
      open.push(done);
      return () => void cancelled.push(...open.splice(open.indexOf(done), 1));
    },
  });
  const ask = (name: string) => queue.dial((error) => ended.push(`${name} ${error?.code ?? 'connected'}`));
  const succeed = (): void => open.shift()?.(undefined, aSocket);
  const fail = (code: string): void => open.shift()?.(new DialError(code, 'no'), undefined);
  return { clock, queue, open, cancelled, ended, ask, succeed, fail };
}

test('connects beyond the limit wait in order', () => {
  const { open, ended, ask, succeed } = aQueue();
  for (const name of ['a', 'b', 'c', 'd']) ask(name);
  expect(open).toHaveLength(2);
  for (let turn = 0; turn < 4; turn += 1) succeed();
  expect(ended).toEqual(['a connected', 'b connected', 'c connected', 'd connected']);
});

test('when a replica cannot be reached, those that wait fail at once, and are not counted as its failures', () => {
  const { open, ended, ask, fail } = aQueue();
  for (const name of ['a', 'b', 'c', 'd']) ask(name);
  fail('ETIMEDOUT');
  expect(ended).toEqual(['a ETIMEDOUT', 'c ENOTBEGUN', 'd ENOTBEGUN']);
  expect(open).toHaveLength(1);
});

test('one failure among successes, or a shortage of this machine, fails no other connect', async () => {
  const { clock, ended, ask, succeed, fail } = aQueue();
  for (const name of ['a', 'b', 'c', 'd', 'e']) ask(name);
  await clock.advance(10);
  succeed();
  fail('ECONNRESET');
  fail('EMFILE');
  succeed();
  expect(ended).toEqual(['a connected', 'b ECONNRESET', 'c EMFILE', 'd connected']);
});

test('a connect waits for a limited time', async () => {
  const { clock, open, ended, ask } = aQueue();
  for (const name of ['a', 'b', 'c']) ask(name);
  await clock.advance(5_000);
  expect([ended, open.length]).toEqual([['c ENOTBEGUN'], 2]);
});

test('a cancelled connect never begins, and its place goes to the next', async () => {
  const { clock, open, cancelled, ended, ask } = aQueue();
  const [a, , c] = ['a', 'b', 'c', 'd'].map(ask);
  c?.();
  a?.();
  a?.();
  expect([open.length, cancelled.length]).toEqual([1, 1]);
  await clock.advance(1);
  expect(open).toHaveLength(2);
  open[1]?.(undefined, aSocket);
  expect(ended).toEqual(['d connected']);
});

test('a replica that leaves refuses those that wait', async () => {
  const { clock, queue, ended, ask } = aQueue();
  for (const name of ['a', 'b', 'c']) ask(name);
  queue.refuseWaiting();
  await clock.advance(1);
  expect(ended).toEqual(['c ENOTBEGUN']);
});
