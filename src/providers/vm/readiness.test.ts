import { expect, test } from 'vitest';
import { idOf } from '../../../test/support/stub-provider.ts';
import { Readiness } from './readiness.ts';

const id = idOf('us-east-1/i-1');

/** Machines whose answers the test controls, in the order of the checks. */
function someReadiness(): { readonly readiness: Readiness; readonly answers: ((isReady: boolean) => void)[] } {
  const answers: ((isReady: boolean) => void)[] = [];
  return { readiness: new Readiness(() => new Promise((resolve) => answers.push(resolve))), answers };
}

test('a machine gets one check at a time until it answers, then stays ready', async () => {
  const { readiness, answers } = someReadiness();
  for (let attempt = 0; attempt < 3; attempt += 1) expect(readiness.isReady(id)).toBe(false);
  for (const isReady of [false, true]) {
    answers.at(-1)?.(isReady);
    await readiness.settled();
    expect(readiness.isReady(id)).toBe(isReady);
  }
  expect(answers).toHaveLength(2);
});

test('an answer to a check before a stop does not count afterwards', async () => {
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
