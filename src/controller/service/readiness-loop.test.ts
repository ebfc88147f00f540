import { pino } from 'pino';
import { expect, test } from 'vitest';
import { aReplica, aService } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { aStubProvider } from '../../../test/support/stub-provider.ts';
import type { ReplicaRecord, ServiceRecord } from '../../domain/records.ts';
import { noReport } from '../../domain/replica/replica-report.ts';
import type { ReadinessReport } from '../../providers/provider.ts';
import { readinessLoop } from './readiness-loop.ts';

const nowhere = new AbortController().signal;

/** A loop over replicas that the test changes, and the reports that the provider got. */
function aLoop(desired: number) {
  const clock = new FakeClock();
  const reports: ReadinessReport[] = [];
  const failures: Error[] = [];
  const provider = aStubProvider({
    reportReadiness: async (report) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      reports.push(report);
    },
  });
  const context = { clock, key: 'abcd', log: pino({ level: 'silent' }), provider: () => Promise.resolve(provider) };
  const memory = { ...aService().memory, autoscaler: { target: desired, upCount: 0, downCount: 0 } };
  const state = { service: aService({ memory }), replicas: [] as readonly ReplicaRecord[] };
  const loop = readinessLoop(context, () => ({
    candidates: state.replicas.map((record) => ({ record, report: noReport, spec: undefined })),
    service: state.service,
    expected: undefined,
  }));
  const pass = async (change: { service?: ServiceRecord; replicas?: readonly ReplicaRecord[] } = {}): Promise<void> => {
    Object.assign(state, change);
    await loop.tick(nowhere);
    await clock.settle();
  };
  return { clock, state, reports, failures, pass };
}

const address = { kind: 'tcp', host: '127.0.0.1', port: 1 } as const;
const offer = { provider: 'stub', region: 'r1', zone: null, instanceType: 'small', resources: '', gpus: 0, spot: false, hourlyUsd: 0 };
const ready = (id: number): ReplicaRecord =>
  aReplica({ id, key: `k-${id}`, state: 'READY', firstReadyAt: 1, machineId: `m${id}`, offer, address });
const starting = (id: number): ReplicaRecord => ({ ...ready(id), state: 'STARTING', firstReadyAt: null });

test('each change is reported once; without a change the report is repeated after a minute', async () => {
  const { clock, reports, pass } = aLoop(2);
  await pass({ replicas: [ready(1), starting(2)] });
  await pass();
  expect(reports).toEqual([
    {
      ownerKey: 'abcd',
      machines: [
        { id: 'm1', isReady: true },
        { id: 'm2', isReady: false },
      ],
      disruption: 'none',
    },
  ]);
  await pass({ replicas: [ready(1), ready(2)] });
  expect(reports.slice(1).map(({ machines, disruption }) => [machines.every(({ isReady }) => isReady), disruption])).toEqual([
    [true, 'one'],
  ]);
  await clock.advance(60_000);
  await pass();
  expect(reports).toHaveLength(3);
});

test('a failed report is repeated after ten seconds', async () => {
  const { clock, reports, failures, pass } = aLoop(1);
  failures.push(new Error('no answer'));
  await pass({ replicas: [ready(1)] });
  expect(reports).toEqual([]);
  await clock.advance(9_000);
  await pass();
  expect(reports).toEqual([]);
  await clock.advance(1_000);
  await pass();
  expect(reports).toHaveLength(1);
});

test('a service that ends needs no protection, and its last machine is reported as gone', async () => {
  const { state, reports, pass } = aLoop(2);
  await pass({ replicas: [ready(1), ready(2)] });
  await pass({ service: { ...state.service, desired: 'down' } });
  await pass({ replicas: [] });
  await pass();
  expect(reports.map(({ machines, disruption }) => [machines.length, disruption])).toEqual([
    [2, 'one'],
    [2, 'any'],
    [0, 'any'],
  ]);
});
