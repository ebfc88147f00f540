import type { LoadSignals } from './load-signals.ts';
import { type EngineLoad, engineLoadOf } from './engine-metrics.ts';
import type { LoadReport, World } from './decision.ts';
import { measuredStartSeconds } from './expected-replica.ts';
import type { ReplicaRecord } from './records.ts';
import type { ReplicaPolicy } from './task.ts';

/** Assumed while no replica of the service was ever ready, s. */
const assumedColdStartSeconds = 180;

/** The input of the autoscalers from a report; undefined when it has only the rate. */
export function signalsOf(
  { detail }: LoadReport,
  replicas: readonly ReplicaRecord[],
  engines: EngineLoad | undefined,
): LoadSignals | undefined {
  if (detail === undefined) return undefined;
  const { recent, ongoing, queued, inFlight } = detail;
  return {
    recent,
    ongoing,
    queued,
    inFlight: Object.values(inFlight).reduce((sum, count) => sum + count, 0),
    ...(engines && { engines }),
    readyReplicas: replicas.filter(({ state }) => state === 'READY').length,
    coldStartSeconds: measuredStartSeconds(replicas) ?? assumedColdStartSeconds,
  };
}

/** The load inside the engines of the ready replicas; undefined when the policy does not use it. */
export function enginesOf(
  { reports, monotonic }: Pick<World, 'reports' | 'monotonic'>,
  replicas: readonly ReplicaRecord[],
  { metricsPath }: ReplicaPolicy,
): EngineLoad | undefined {
  if (metricsPath === undefined) return undefined;
  const ready = replicas.filter(({ state }) => state === 'READY');
  return engineLoadOf(
    ready.map(({ id }) => reports.get(id)?.engine),
    monotonic,
  );
}
