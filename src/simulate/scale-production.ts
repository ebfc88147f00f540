import { decideTarget, initialAutoscaler, nextDecisionMs, rateWindowMs } from '../domain/autoscale.ts';
import { stepSeconds } from '../domain/autoscale-forecast.ts';
import type { LoadSignals } from '../domain/load-signals.ts';
import { policyAt } from '../domain/replica-schedule.ts';
import type { ReplicaPolicy } from '../domain/task.ts';
import { ongoingRequests, type ScaleFacts, type ScalerKind } from './scale-world.ts';

/** The ten-second slots that a load report has at most. */
const mostSlots = 60;

/**
 * An autoscaler of a service, by the function that decides in production. The schedule of the policy counts when the
 * trace has dates: `startedAt` is the wall time of its first second, ms.
 */
export function policyScaler(name: string, policy: ReplicaPolicy, startedAt?: number): ScalerKind {
  return {
    name,
    start(trace, replicas) {
      let memory = { ...initialAutoscaler(policy), target: replicas };
      let seen: readonly { readonly second: number; readonly value: number }[] = [];
      const everySeconds = nextDecisionMs({ ...memory, target: 1 }, policy) / 1_000;
      const mean = (since: number): number => {
        const values = seen.filter((one) => one.second > since);
        return values.reduce((sum, { value }) => sum + value, 0) / Math.max(1, values.length);
      };
      const signalsAt = (facts: ScaleFacts, inFlight: number): LoadSignals => ({
        recent: Array.from({ length: Math.min(mostSlots, Math.floor(facts.second / stepSeconds)) }, (_, slot) =>
          facts.arrived(facts.second - (slot + 1) * stepSeconds, facts.second - slot * stepSeconds),
        ),
        ongoing: { minute: mean(facts.second - 60), moment: mean(facts.second - 6) },
        inFlight,
        queued: facts.backlog,
        readyReplicas: facts.ready,
        coldStartSeconds: trace.coldStartSeconds,
      });
      return {
        everySeconds,
        decide(facts) {
          const { second, backlog, arrived } = facts;
          const inFlight = ongoingRequests(facts, trace, everySeconds) - backlog;
          seen = [...seen, { second, value: inFlight + backlog }].filter((one) => one.second > second - 60);
          const present = startedAt === undefined ? policy : policyAt(policy, startedAt + second * 1_000);
          memory = decideTarget(memory, present, {
            requestsInWindow: arrived(second - rateWindowMs / 1_000, second),
            busy: inFlight + backlog,
            fleet: { living: [], toCome: 1 },
            signals: signalsAt(facts, inFlight),
          });
          return memory.target;
        },
      };
    },
  };
}
