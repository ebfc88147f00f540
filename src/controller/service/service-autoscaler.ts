import { decideTarget, wantedReplicas } from '../../domain/autoscale/decide.ts';
import { initialAutoscaler, nextDecisionMs, type AutoscalerMemory } from '../../domain/autoscale/hysteresis.ts';
import type { Fleet, ServiceLoad } from '../../domain/autoscale/load.ts';
import { rateWindowMs, requestRate } from '../../domain/autoscale/request-rate.ts';
import { addArrivals, requestsInWindow, type RequestWindow } from '../../domain/autoscale/request-window.ts';
import type { ReplicaPolicy } from '../../domain/task.ts';
import { countReplicas } from '../../spec/describe.ts';
import type { ServiceRecord } from '../../store/records.ts';
import type { BalancerView } from './balancer-client.ts';
import type { ServiceContext } from './service-context.ts';

/** Decides how many replicas a service is to have, when a decision is due; its memory is stored, so that a restart goes on counting. */
export class ServiceAutoscaler {
  readonly #context: ServiceContext;
  readonly #startedAt: number;
  #window: RequestWindow = [];
  #nextDecisionAt = Number.NEGATIVE_INFINITY;

  constructor(context: ServiceContext) {
    this.#context = context;
    this.#startedAt = context.clock.monotonic();
  }

  /** Takes note of requests that reached the balancer. */
  arrivals(count: number): void {
    this.#window = addArrivals(this.#window, this.#context.clock.monotonic(), count);
  }

  /** Makes the next decision due. */
  decideNow(): void {
    this.#nextDecisionAt = Number.NEGATIVE_INFINITY;
  }

  /** What is wanted now. While the balancer cannot be heard there are no figures to take anything away by. */
  async decide(service: ServiceRecord, policy: ReplicaPolicy, balancer: BalancerView, fleet: Fleet): Promise<AutoscalerMemory> {
    const { clock, store, name, key } = this.#context;
    const known = service.memory.autoscaler;
    const before = known ?? initialAutoscaler(policy);
    const now = clock.monotonic();
    if (now < this.#nextDecisionAt && known !== null) return before;
    const load = { requestsInWindow: requestsInWindow(this.#window, now), busy: busyRequests(balancer), fleet };
    // After a restart the window is not full yet: then, too, nothing is taken away.
    const blind = !balancer.connected || now - this.#startedAt < rateWindowMs;
    const after = blind && wantedReplicas(policy, load) < before.target ? before : decideTarget(before, policy, load);
    this.#nextDecisionAt = now + nextDecisionMs(after);
    if (known !== null && JSON.stringify(after) === JSON.stringify(before)) return after;
    await this.#context.changeService((fresh) => ({ memory: { ...fresh.memory, autoscaler: after } }));
    if (after.target !== before.target) {
      const message = `${reasonOf(load)}: from ${before.target} to ${countReplicas(after.target)}.`;
      await store.events.append({
        at: clock.now(),
        subject: name,
        subjectKey: key,
        replicaId: null,
        from: null,
        to: null,
        cause: 'autoscale',
        message,
      });
    }
    return after;
  }
}

/** Requests that wait for a replica or are under way at one. */
function busyRequests({ inFlight, queued }: BalancerView): number {
  return Object.values(inFlight).reduce((sum, count) => sum + count, queued);
}

function reasonOf(load: ServiceLoad): string {
  const rate = `${requestRate(load).toFixed(2)} requests/s in the last minute`;
  return load.busy === 0 ? rate : `${rate}, ${load.busy} waiting or under way`;
}
