import { seededRandom } from '../../src/shared/random.ts';
import { simulateCombined, type CombinedQuestion } from '../../src/simulate/combined-simulation.ts';
import { simulateRequests, type RequestQuestion } from '../../src/simulate/request-simulation.ts';
import type { Findings } from '../../src/simulate/report/report.ts';
import { simulateSpot, type SpotQuestion } from '../../src/simulate/spot-simulation.ts';
import { aServiceSpec } from './builders.ts';

interface FindingsOptions {
  readonly service?: string;
  /** The name of one zone. */
  readonly zone?: string;
  readonly days?: number;
}

/** The result of a small simulation over requests and over spot capacity, with two policies each. */
export function someFindings({ service = 'service.yaml', zone = 'us-east-1a', days = 0.1 }: FindingsOptions = {}): Findings {
  const random = seededRandom(3);
  const arrivals = Array.from({ length: days * 86_400 }, (_, second) => Math.floor(10 + 8 * Math.sin(second / 3_000) + random() * 6));
  const requests: RequestQuestion = {
    trace: { arrivals, capacityQps: 3, coldStartSeconds: 60 },
    startedAt: undefined,
    policy: { ...aServiceSpec().replicaPolicy, minReplicas: 1, maxReplicas: 20, targetQpsPerReplica: 2.1 },
    compared: ['knative'],
  };
  const capacity = [0, 1].map(() => Array.from({ length: days * 288 }, () => Math.floor(random() * 5)));
  const spot: SpotQuestion = {
    trace: { name: 'week', gapSeconds: 300, zones: [zone, 'us-west-2b'], capacity },
    target: 2,
    coldStartSeconds: 60,
    spotPrices: [0.3, 0.3],
    spare: 1,
    compared: ['round_robin', 'on_demand'],
  };
  const both: CombinedQuestion = {
    // Three runs of ten days would take long.
    requests: { ...requests, trace: { ...requests.trace, arrivals: arrivals.slice(0, 20_000) } },
    spot,
    placer: 'hedge',
    compared: [
      { autoscaler: 'file', placer: 'hedge' },
      { autoscaler: 'file', placer: 'on_demand' },
    ],
  };
  return {
    service,
    requests: {
      name: 'day.csv',
      facts: ['A day of requests.'],
      hourlyUsd: undefined,
      question: requests,
      answer: simulateRequests(requests),
    },
    spot: [{ name: 'week', facts: ['A week of capacity.'], hourlyUsd: undefined, question: spot, answer: simulateSpot(spot) }],
    both: [{ name: 'day.csv', facts: ['Both.'], hourlyUsd: 2, question: both, answer: simulateCombined(both) }],
  };
}
