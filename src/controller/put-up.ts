import { SvcError } from '../shared/errors.ts';
import type { ServiceRecord } from '../store/records.ts';
import { createService, type ServiceRequest } from './create-service.ts';
import type { DaemonContext } from './daemon-context.ts';
import type { ServiceProcesses } from './service-processes.ts';

/** How long the endpoint may take to listen before `up` answers all the same, ms. */
const balancerStartMs = 5_000;
/** Ports that are tried when others take them between the choice and the start. */
const attempts = 5;

/**
 * Records a service and starts its processes. A port that somebody else takes at the same moment is given up for another one, unless it was
 * asked for: then the service is taken back and SVC_PORT_BUSY says so.
 */
export async function putUp(context: DaemonContext, processes: ServiceProcesses, request: ServiceRequest): Promise<ServiceRecord> {
  for (let attempt = 1; ; attempt += 1) {
    const service = await createService(context, request);
    await processes.ensure(service);
    if ((await processes.balancerStart(service.key, balancerStartMs)) !== 'port-busy') return service;
    const message = `Port ${service.port} was taken by another program at the same moment.`;
    const { name, key, state } = service;
    const event = {
      at: context.clock.now(),
      subject: name,
      subjectKey: key,
      replicaId: null,
      from: state,
      to: null,
      cause: 'port-busy',
      message,
    };
    await context.store.services.remove(name, key, event);
    await processes.removeGone();
    if (request.port !== undefined || attempt >= attempts) throw new SvcError('SVC_PORT_BUSY', message);
  }
}
