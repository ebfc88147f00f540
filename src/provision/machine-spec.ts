import { widestBounds } from '../domain/replica-schedule.ts';
import { machineLimits } from '../domain/machine-limits.ts';
import type { Resources, Task } from '../domain/task.ts';
import type { MachineSpec } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import type { ProviderState } from './providers.ts';

/** The part of the specification that follows from the task and the resource alternative. */
export function taskMachineSpec(task: Task, resources: Resources | undefined): Omit<MachineSpec, 'tags' | 'clients'> {
  return {
    labels: resources?.labels ?? {},
    ports: servedPorts(task, resources),
    followsPort: followsPort(task),
    diskSizeGb: resources?.diskSizeGb ?? 0,
    diskTier: resources?.diskTier,
    imageId: resources?.imageId,
    nodes: task.numNodes,
    volumes: task.volumes,
    providerConfig: task.providerConfig,
    limits: resources === undefined ? {} : machineLimits(resources),
    role: 'replica',
  };
}

/** A program that mentions this variable listens on the assigned port. */
const portMention = /\$\{?SVC_REPLICA_PORT\b/;

/** Whether the program listens on the assigned port, so that svc can choose any. */
export function followsPort({ run = '' }: Pick<Task, 'run'>): boolean {
  return portMention.test(run);
}

/** The service's port, and the ports that the alternative opens. */
export function servedPorts({ service }: Pick<Task, 'service'>, resources: Pick<Resources, 'ports'> | undefined): readonly number[] {
  return [...new Set([...(service === undefined ? [] : [service.replicaPort]), ...(resources?.ports ?? [])])];
}

/**
 * Throws SVC_ISOLATION, with reason and remedy, for several replicas on a fixed port at providers whose machines share
 * ports: only the first replica would come up.
 */
export function refuseSharedPorts(task: Task, providers: readonly ProviderState[]): void {
  const { service } = task;
  const most = service === undefined ? 1 : widestBounds(service.replicaPolicy).maxReplicas;
  if (most <= 1 || followsPort(task)) return;
  for (const { check } of providers) {
    const { enabled, sharedPorts, remedies } = check;
    if (!enabled || sharedPorts === undefined) continue;
    throw new SvcError('SVC_ISOLATION', `Several replicas would all listen on port ${service?.replicaPort}, as ${sharedPorts}.`, {
      hint: ['Make run listen on $SVC_REPLICA_PORT', 'set replicas: 1', ...remedies].join('; or: '),
    });
  }
}
