import {
  decideTarget,
  initialAutoscaler,
  nextDecisionMs,
  rateWindowMs,
  wantedReplicas,
  type AutoscalerMemory,
} from '../../domain/autoscale/request-rate.ts';
import { addArrivals, requestsInWindow, type RequestWindow } from '../../domain/autoscale/request-window.ts';
import type { ReplicaPolicy } from '../../domain/task.ts';
import { countReplicas } from '../../spec/describe.ts';
import type { ServiceRecord } from '../../store/records.ts';
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

  /** What is wanted now. `connected`: the balancer can be heard; without, there are no figures to take anything away by. */
  async decide(service: ServiceRecord, policy: ReplicaPolicy, connected: boolean): Promise<AutoscalerMemory> {
    const { clock, store, name, key } = this.#context;
    const known = service.memory.autoscaler;
    const before = known ?? initialAutoscaler(policy);
    const now = clock.monotonic();
    if (now < this.#nextDecisionAt && known !== null) return before;
    const requests = requestsInWindow(this.#window, now);
    // After a restart the window is not full yet: then, too, nothing is taken away.
    const blind = !connected || now - this.#startedAt < rateWindowMs;
    const after = blind && wantedReplicas(policy, requests) < before.target ? before : decideTarget(before, policy, requests);
    this.#nextDecisionAt = now + nextDecisionMs(after);
    if (known !== null && JSON.stringify(after) === JSON.stringify(before)) return after;
    await this.#context.changeService((fresh) => ({ memory: { ...fresh.memory, autoscaler: after } }));
    if (after.target !== before.target) {
      const rate = (requests / (rateWindowMs / 1_000)).toFixed(2);
      const message = `${rate} requests/s in the last minute: from ${before.target} to ${countReplicas(after.target)}.`;
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
