import type { Clock } from '../shared/clock.ts';
import { compareAndSwap } from '../store/compare-and-swap.ts';
import { type ServiceRecord, subjectEvent } from '../domain/records.ts';
import type { UpdateMode } from '../domain/task.ts';
import { restartedUpdate } from '../domain/update-stage.ts';
import type { Store } from '../store/store.ts';

interface RetryDeps {
  readonly store: Pick<Store, 'services'>;
  readonly clock: Clock;
}

interface RetriedService {
  readonly refusals: number;
  /** How a stopped update, which begins again, moves requests. */
  readonly restarted?: UpdateMode;
}

/**
 * Ends all refusals of a service at a user's request: its reconciler asks every provider again, also after it gave up.
 * A stopped update begins again. Returns the number of active refusals. `find` reads the service, or throws.
 */
export async function retryService({ store, clock }: RetryDeps, find: () => Promise<ServiceRecord>): Promise<RetriedService> {
  let held = 0;
  let restarted: UpdateMode | undefined;
  await compareAndSwap(find, (service) => {
    const now = clock.now();
    held = activeRefusals(service, now);
    const { update, gaveUp } = service.memory;
    restarted = gaveUp && update !== undefined ? (update.mode ?? 'rolling') : undefined;
    const memory = {
      ...service.memory,
      failures: [],
      gaveUp: false,
      retry: 'all' as const,
      // An update in progress that nothing stopped goes on where it is.
      ...(update !== undefined && gaveUp && { update: restartedUpdate(update, now) }),
    };
    const reason = gaveUp ? { reason: null } : {};
    const ends = held === 1 ? '1 refusal ends' : `${held} refusals end`;
    const begins = restarted === undefined ? '' : ` The update to version ${service.version} (${restarted}) begins again.`;
    const message = `A user asked to try again: ${ends}.${begins}`;
    const event = subjectEvent(service, { at: now, from: service.state, to: service.state, cause: 'retry', message });
    return store.services.update(service, { memory, ...reason }, event);
  });
  return { refusals: held, ...(restarted !== undefined && { restarted }) };
}

/** Records that a user stopped the controller: its next start ends all refusals of all services. */
export async function retryAtNextStart(deps: RetryDeps): Promise<void> {
  await markAll(deps, () => 'all-at-start');
}

/**
 * Ends refusals of all services after the controller's start: a user may have repaired something, or another version
 * stored longer backoffs. After a crash, late refusals stay, because a controller in a crash loop must not launch at
 * each start. Reconcilers outlive the controller, so their own start cannot do this.
 */
export async function retryAfterStart(deps: RetryDeps): Promise<void> {
  await markAll(deps, (before) => (before === 'all-at-start' || before === 'all' ? 'all' : 'early'));
}

type Retry = ServiceRecord['memory']['retry'];

async function markAll({ store, clock }: RetryDeps, markOf: (before: Retry) => Retry): Promise<void> {
  const mark = (service: ServiceRecord): Promise<ServiceRecord | undefined> | undefined => {
    if (activeRefusals(service, clock.now()) === 0 && service.memory.retry === undefined) return undefined;
    return store.services.update(service, { memory: { ...service.memory, retry: markOf(service.memory.retry) } });
  };
  for (const { name } of await store.services.list()) await compareAndSwap(() => store.services.get(name), mark);
}

const activeRefusals = ({ memory }: ServiceRecord, now: number): number =>
  (memory.placement?.refusals ?? []).filter(({ until }) => until > now).length;
