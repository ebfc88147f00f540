import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { crashWindowMs, lastErrorInLog, ProcessCrashes } from './process-crashes.ts';

test('crashes count for ten minutes, and the last error is kept', async () => {
  const clock = new FakeClock();
  const crashes = new ProcessCrashes(clock);
  expect(crashes.recent).toBeUndefined();
  crashes.add('first');
  await clock.advance(crashWindowMs - 1_000);
  crashes.add('second');
  expect(crashes.recent).toEqual({ count: 2, lastAt: clock.now(), lastError: 'second' });
  await clock.advance(2_000);
  expect(crashes.recent?.count).toBe(1);
  await clock.advance(crashWindowMs);
  expect(crashes.recent).toBeUndefined();
});

test.for([
  [
    'an uncaught exception',
    "    arrivals: () => x,\n\nReferenceError: Cannot access 'x' before initialization\n    at run.ts:63:1\n\nNode.js v24\n",
    "ReferenceError: Cannot access 'x' before initialization",
  ],
  ['a failure with a code', 'SvcError [SVC_DATABASE]: The server is away.\n    at x\n', 'SvcError [SVC_DATABASE]: The server is away.'],
  [
    'a line of its log',
    '{"level":30,"msg":"fine"}\n{"level":60,"err":{"message":"no file"},"msg":"Uncaught exception"}\n{"level":30,"msg":"bye"}\n',
    'Uncaught exception: no file',
  ],
  ['nothing that is an error', '{"level":30,"msg":"error: fine"}\nreading\n', undefined],
] as const)('the last error in a log: %s', ([, text, expected]) =>
  withTempHome(async (home) => {
    const log = join(home, 'x.log');
    writeFileSync(log, 'Error: of an earlier process\n');
    const { size } = statSync(log);
    appendFileSync(log, text);
    expect(lastErrorInLog(log, size)).toBe(expected);
    expect(lastErrorInLog(join(home, 'none'), 0)).toBeUndefined();
  }),
);
