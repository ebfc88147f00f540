import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatJobRecord, parseJobRecord, type JobRecord } from './job-record.ts';

const maybe = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> => fc.option(value, { nil: undefined });
const recorded = fc.record({ pid: fc.nat(4_194_304), startTicks: fc.nat() });

const record: fc.Arbitrary<JobRecord> = fc.record({
  phase: fc.constantFrom('setup', 'run', 'ended'),
  bootId: fc.uuid(),
  runner: maybe(recorded),
  program: maybe(recorded),
  startedAt: maybe(fc.nat()),
  endedAt: maybe(fc.nat()),
  exitCode: maybe(fc.nat(255)),
  signal: maybe(fc.constantFrom('SIGKILL', 'SIGTERM')),
  failedPhase: maybe(fc.constantFrom('setup', 'run')),
});

test('a formatted record parses to the same record', () => {
  fc.assert(
    fc.property(record, (one) => {
      expect(parseJobRecord(formatJobRecord(one))).toEqual(one);
    }),
  );
});

test('text that is not a record yields undefined and no error', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(parseJobRecord(text)).toBeUndefined();
    }),
  );
});

test('a record written by the runner is parsed, empty fields included', () => {
  const text = 'phase=ended\nboot=b0\nrunner=12 345\nprogram=13 346\nstarted=1000\nended=2000\nexit=0\nsignal=\nfailed=\n';
  expect(parseJobRecord(text)).toEqual({
    phase: 'ended',
    bootId: 'b0',
    runner: { pid: 12, startTicks: 345 },
    program: { pid: 13, startTicks: 346 },
    startedAt: 1_000,
    endedAt: 2_000,
    exitCode: 0,
    signal: undefined,
    failedPhase: undefined,
  });
});
