import type { LoadSignals } from './load-signals.ts';
import type { LoadReport } from './decision.ts';
import type { ReplicaRecord } from './records.ts';

/** Assumed while no replica of the service was ever ready, s. */
const assumedColdStartSeconds = 180;

/** Only the newest starts count: another version may start faster. */
const countedStarts = 9;

/** The input of the autoscalers from a report; undefined when it has only the rate. */
export function signalsOf({ detail }: LoadReport, replicas: readonly ReplicaRecord[]): LoadSignals | undefined {
  if (detail === undefined) return undefined;
  const { recent, ongoing, queued, inFlight } = detail;
  return {
    recent,
    ongoing,
    queued,
    inFlight: Object.values(inFlight).reduce((sum, count) => sum + count, 0),
    readyReplicas: replicas.filter(({ state }) => state === 'READY').length,
    coldStartSeconds: coldStartSeconds(replicas),
  };
}

/** Median time from a launch to the first passed probe. */
function coldStartSeconds(replicas: readonly Pick<ReplicaRecord, 'createdAt' | 'firstReadyAt'>[]): number {
  const starts = replicas.flatMap(({ createdAt, firstReadyAt }) => (firstReadyAt === null ? [] : [(firstReadyAt - createdAt) / 1_000]));
  const newest = starts.slice(-countedStarts).toSorted((a, b) => a - b);
  return newest[Math.floor((newest.length - 1) / 2)] ?? assumedColdStartSeconds;
}
