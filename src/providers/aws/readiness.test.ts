import { expect, test } from 'vitest';
import { idOf } from '../../../test/support/stub-place.ts';
import { Readiness } from './readiness.ts';

const id = idOf('us-east-1/i-1');

/** Machines whose answers come when the test says so, in the order in which they were asked for. */
function someReadiness(): { readonly readiness: Readiness; readonly answers: ((isReady: boolean) => void)[] } {
  const answers: ((isReady: boolean) => void)[] = [];
  return { readiness: new Readiness(() => new Promise((resolve) => answers.push(resolve))), answers };
}

test('a machine is asked by one question at a time until it answers, and that is remembered', async () => {
  const { readiness, answers } = someReadiness();
  for (let look = 0; look < 3; look += 1) expect(readiness.isReady(id)).toBe(false);
  for (const isReady of [false, true]) {
    answers.at(-1)?.(isReady);
    await readiness.settled();
    expect(readiness.isReady(id)).toBe(isReady);
  }
  expect(answers).toHaveLength(2);
});

test('an answer to a question of before a stop does not count after it', async () => {
  const { readiness, answers } = someReadiness();
  readiness.isReady(id);
  readiness.forget(id);
  readiness.isReady(id);
  const [before, after] = answers;
  before?.(true);
  await new Promise((turn) => setImmediate(turn));
  expect(readiness.isReady(id)).toBe(false);
  after?.(true);
  await readiness.settled();
  expect(readiness.isReady(id)).toBe(true);
});
