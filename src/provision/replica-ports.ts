import type { Resources, Task } from '../domain/task.ts';
import type { PlaceState } from './places.ts';
import { SvcError } from '../shared/errors.ts';

/** What in a program shows that it listens where it is told to. */
const portMention = /\$\{?SVC_REPLICA_PORT\b/;

/** Whether the program of a task listens where it is told to, so that it can be given any port. */
export function followsPort({ run = '' }: Pick<Task, 'run'>): boolean {
  return portMention.test(run);
}

/** The ports that a machine for an alternative of a task serves: that of the service, and what the alternative opens. */
export function servedPorts({ service }: Pick<Task, 'service'>, resources: Pick<Resources, 'ports'> | undefined): readonly number[] {
  return [...new Set([...(service === undefined ? [] : [service.replicaPort]), ...(resources?.ports ?? [])])];
}

/**
 * Refuses a service of several replicas, which may be at the given places, whose program listens on a fixed port where machines share their ports: only the first replica would
 * come up. Throws SVC_ISOLATION with the reason and what to do.
 */
export function refuseSharedPorts(task: Task, places: readonly PlaceState[]): void {
  const { service } = task;
  if ((service?.replicaPolicy.maxReplicas ?? 1) <= 1 || followsPort(task)) return;
  for (const { check } of places) {
    const { enabled, sharedPorts, remedies } = check;
    if (!enabled || sharedPorts === undefined) continue;
    throw new SvcError('SVC_ISOLATION', `Several replicas would all listen on port ${service?.replicaPort}, as ${sharedPorts}.`, {
      hint: ['Make run listen on $SVC_REPLICA_PORT', 'set replicas: 1', ...remedies].join('; or: '),
    });
  }
}
