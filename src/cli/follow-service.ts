import type { ApiClient } from '../api/client.ts';
import type { EventView, ServiceView } from '../api/contract.ts';
import { SvcError } from '../shared/errors.ts';
import type { CommandContext } from './context.ts';
import { isStep, renderLiveEvent } from './event-line.ts';

/** How long one stream of events is listened to before the service itself is looked at again, ms. */
const lookEveryMs = 2_000;
const retryMs = 500;

/** Failures in a row, of the connection, before it is given up: the controller is started again where it died. */
const maxFailures = 5;

/** States in which waiting is in vain: nothing is launched any more, or nobody is there to do it. Until then failed replicas are replaced. */
const failedStates: readonly string[] = ['FAILED', 'CONTROLLER_FAILED', 'FAILED_CLEANUP'];

/**
 * Shows what happens to a service until its first replica is ready, and gives it as it is then; undefined when interrupted. A controller
 * that dies meanwhile is started again. Throws SVC_SERVICE_FAILED when it cannot become ready, SVC_SERVICE_NOT_FOUND when it is taken down.
 */
export async function followUntilReady(name: string, context: CommandContext): Promise<ServiceView | undefined> {
  const { ui, clock, signal, connection } = context;
  const progress = ui.progress();
  let after = 0;
  let failures = 0;
  try {
    while (!signal.aborted) {
      progress.now('Waiting for the first replica to be ready');
      try {
        const api = await connection.client();
        const service = await api.call('getService', { params: { name } });
        if (service.replicasReady > 0) return service;
        if (failedStates.includes(service.status)) throw failure(service);
        if (service.status === 'SHUTTING_DOWN') throw new SvcError('SVC_SERVICE_NOT_FOUND', `Service '${name}' is being taken down.`);
        for await (const event of eventsFor(api, name, after, context)) {
          after = event.id;
          if (isStep(event)) progress.line(renderLiveEvent(event, ui.sayWidth));
          if (event.to === 'READY' || (event.replicaId === null && failedStates.includes(event.to ?? ''))) break;
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

/** New events of the next two seconds. */
async function* eventsFor(api: ApiClient, name: string, after: number, { clock, signal }: CommandContext): AsyncGenerator<EventView> {
  const pause = new AbortController();
  const cancel = clock.after(lookEveryMs, () => pause.abort());
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

function failure(service: ServiceView): SvcError {
  const failed = service.replicas.findLast(({ status }) => status.startsWith('FAILED'));
  // The service's own reason names the replica that it quotes.
  const quoted = failed?.reason === null || failed === undefined ? 'its replicas keep failing' : `replica ${failed.id}: ${failed.reason}`;
  const reason = service.reason ?? quoted;
  const log = failed === undefined ? '--controller' : String(failed.id);
  return new SvcError('SVC_SERVICE_FAILED', `Service '${service.name}' failed: ${reason}`, {
    hint: `Read the log: svc serve logs ${service.name} ${log}. Then take it down: svc serve down ${service.name}`,
  });
}
