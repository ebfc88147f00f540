import type { ApiClient } from '../../api/client.ts';
import type { EventView, ServiceView } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../command.ts';
import { isStep, renderLiveEvent } from '../listing/event-line.ts';

/** How long one stream of events is read before the service is polled again, ms. */
const pollIntervalMs = 2_000;
const retryMs = 500;

/** Consecutive connection failures until the command gives up. A controller that died is started again before that. */
const maxFailures = 5;

/** What a command waits for. */
export interface FollowGoal {
  /** Shown while nothing happens. */
  readonly text: string;
  /** Throws when the service cannot reach the goal. */
  isReached(service: ServiceView): boolean;
  /** Whether the service may have reached the goal with this event. */
  mayReach(event: EventView): boolean;
}

/**
 * Shows a service's events until the goal is reached; undefined when interrupted. Starts the controller again if it
 * dies meanwhile. Throws what `isReached` throws, and SVC_SERVICE_NOT_FOUND when the service is terminated. `after`:
 * only events with a greater id are shown.
 */
export async function followService(
  name: string,
  goal: FollowGoal,
  context: CommandContext,
  start: { readonly after: number } = { after: 0 },
): Promise<ServiceView | undefined> {
  const { ui, clock, signal, connection } = context;
  const progress = ui.progress();
  let { after } = start;
  let failures = 0;
  try {
    while (!signal.aborted) {
      progress.now(goal.text);
      try {
        const api = await connection.client((text) => progress.now(text));
        const service = await api.call('getService', { params: { name } });
        if (goal.isReached(service)) return service;
        if (service.status === 'SHUTTING_DOWN') throw new SvcError('SVC_SERVICE_NOT_FOUND', `Service '${name}' is being terminated.`);
        for await (const event of eventsFor(api, name, after, context)) {
          after = event.id;
          if (isStep(event)) progress.line(renderLiveEvent(event, ui.sayWidth));
          if (goal.mayReach(event)) break;
        }
        failures = 0;
      } catch (error) {
        if (!(error instanceof SvcError) || error.kind !== 'transient' || failures >= maxFailures) throw error;
        failures += 1;
        await clock.sleep(retryMs, signal);
      }
    }
    return undefined;
  } finally {
    progress.stop();
  }
}

/** Yields the new events of the next two seconds. */
async function* eventsFor(api: ApiClient, name: string, after: number, { clock, signal }: CommandContext): AsyncGenerator<EventView> {
  const pause = new AbortController();
  const cancel = clock.after(pollIntervalMs, () => pause.abort());
  try {
    yield* api.lines('serviceEvents', {
      params: { name },
      query: { follow: true, after },
      signal: AbortSignal.any([signal, pause.signal]),
    });
  } finally {
    cancel();
  }
}
