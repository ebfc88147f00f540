import type { LoadSignals } from './load-signals.ts';
import type { LoadReport } from './decision.ts';
import { measuredStartSeconds } from './expected-replica.ts';
import type { ReplicaRecord } from './records.ts';

/** Assumed while no replica of the service was ever ready, s. */
const assumedColdStartSeconds = 180;

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
    coldStartSeconds: measuredStartSeconds(replicas) ?? assumedColdStartSeconds,
  };
}
