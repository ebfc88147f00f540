import { allowedDisruption, nextShortage, type AllowedDisruption, type Shortage } from '../../domain/disruption.ts';
import { endpointSet } from '../../domain/endpoint-set.ts';
import type { ServiceRecord } from '../../domain/records.ts';
import { isEnded } from '../../domain/replica/replica-state.ts';
import { assertMachineId, type MachineId } from '../../providers/provider.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Loop } from '../../shared/loop.ts';
import type { EndpointInput } from './endpoint-publisher.ts';
import type { ServiceContext } from './service-context.ts';

/** How often the endpoint set is compared with the last report, ms. The comparison makes no call. */
const compareEveryMs = 1_000;
/** An equal report is repeated after this time, ms: it repairs what others changed at the provider. */
const repeatMs = 60_000;
/** Delay after a failed report, ms. */
const retryMs = 10_000;
/** A provider that has not answered a report for this long, ms, gets the next one. */
const answerLimitMs = 30_000;
const noAnswer = (): Error => new SvcError('SVC_PLACE_FAILED', 'no answer');

type Context = Pick<ServiceContext, 'clock' | 'key' | 'log' | 'provider'>;

interface ProviderReport {
  readonly machines: readonly { readonly id: MachineId; readonly isReady: boolean }[];
  readonly disruption: AllowedDisruption;
}

/** Reports to providers which machines are ready: the replicas of the endpoint set that get requests. */
export function readinessLoop(context: Context, input: () => EndpointInput): Loop {
  const reported = new Map<string, { readonly text: string; readonly at: number }>();
  const failedAt = new Map<string, number>();
  const busy = new Set<string>();
  let shortage: Shortage | undefined;

  const report = async (name: string, { machines, disruption }: ProviderReport, signal: AbortSignal): Promise<void> => {
    const text = JSON.stringify({ machines, disruption });
    const last = reported.get(name);
    const now = context.clock.monotonic();
    if (busy.has(name) || (last?.text === text && now - last.at < repeatMs)) return;
    if (now - (failedAt.get(name) ?? Number.NEGATIVE_INFINITY) < retryMs) return;
    busy.add(name);
    try {
      const provider = await context.provider(name);
      const send = (inner: AbortSignal): Promise<void> | undefined =>
        provider.reportReadiness?.({ ownerKey: context.key, machines, disruption }, { signal: inner });
      await withDeadline(context.clock, answerLimitMs, async (inner) => send(inner), noAnswer, signal);
      reported.set(name, { text, at: now });
      failedAt.delete(name);
      if (machines.length === 0) reported.delete(name);
    } catch (error) {
      failedAt.set(name, context.clock.monotonic());
      if (!signal.aborted) context.log.warn({ err: error, provider: name }, 'could not report the readiness of replicas to a provider');
    } finally {
      busy.delete(name);
    }
  };

  return {
    name: 'readiness',
    everyMs: compareEveryMs,
    async tick(signal) {
      const { candidates, service } = input();
      if (service === undefined) return;
      const serving = new Set(endpointSet(candidates).flatMap(({ id, state }) => (state === 'serving' ? [id] : [])));
      const now = context.clock.monotonic();
      const counts = { ready: serving.size, target: desiredReplicas(service) ?? serving.size };
      shortage = nextShortage(shortage, counts, now);
      const disruption = allowedDisruption(counts, shortage, now);
      const machines = candidates.flatMap(({ record: { id, state, machineId, offer } }) => {
        if (isEnded(state) || machineId === null || offer === null) return [];
        assertMachineId(machineId);
        return [{ provider: offer.provider, id: machineId, isReady: serving.has(id) }];
      });
      const byProvider = Map.groupBy(machines, ({ provider }) => provider);
      // A provider without machines now has to forget the ones that it had.
      for (const name of new Set([...reported.keys(), ...byProvider.keys()])) {
        const own = (byProvider.get(name) ?? []).map(({ id, isReady }) => ({ id, isReady }));
        // Not awaited: a provider that does not answer must not delay the reports to others.
        void report(name, { machines: own, disruption }, signal);
      }
    },
  };
}

/** Undefined before the first decision. */
function desiredReplicas({ desired, memory }: ServiceRecord): number | undefined {
  return desired === 'down' ? 0 : memory.autoscaler?.target;
}
