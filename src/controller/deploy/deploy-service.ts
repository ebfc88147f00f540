import { SvcError } from '../../shared/errors.ts';
import type { ServiceRecord } from '../../domain/records.ts';
import { createService, type ServiceRequest } from './create-service.ts';
import type { DaemonContext } from '../daemon-context.ts';
import type { ServiceProcesses } from '../supervise/service-processes.ts';

/** How long `up` waits for the endpoint to listen before it answers anyway, ms. */
const balancerStartMs = 5_000;
/** Number of ports to try when other processes take them between the choice and the start. */
const attempts = 5;

/**
 * Records a service and starts its processes. When another process takes the port at the same moment, another port is
 * tried. If the user requested that port, the service is removed and SVC_PORT_BUSY is thrown.
 */
export async function deployService(context: DaemonContext, processes: ServiceProcesses, request: ServiceRequest): Promise<ServiceRecord> {
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
