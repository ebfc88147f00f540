import type { Task } from '../domain/task.ts';
import type { Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';

/** What in a program shows that it listens where it is told to. */
const portMention = /\$\{?SVC_REPLICA_PORT\b/;

/**
 * Refuses a service of several replicas whose program listens on a fixed port where machines share their ports: only the first replica would
 * come up. Throws SVC_ISOLATION with the reason and what to do.
 */
export async function refuseSharedPorts(task: Task, providers: readonly Provider[]): Promise<void> {
  const { run = '', service } = task;
  if ((service?.replicaPolicy.maxReplicas ?? 1) <= 1 || portMention.test(run)) return;
  for (const provider of providers) {
    const { enabled, sharedPorts, remedies } = await provider.check({});
    if (!enabled || sharedPorts === undefined) continue;
    throw new SvcError('SVC_ISOLATION', `Several replicas would all listen on port ${service?.replicaPort}, as ${sharedPorts}.`, {
      hint: ['Make run listen on $SVC_REPLICA_PORT', 'set replicas: 1', ...remedies].join('; or: '),
    });
  }
}
