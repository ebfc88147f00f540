import type { Resources, Task } from '../domain/task.ts';
import type { MachineSpec } from '../providers/provider.ts';
import { followsPort, servedPorts } from './replica-ports.ts';

/** The part of a replica's machine specification that follows from its task and the resource alternative. */
export function replicaMachineSpec(task: Task, resources: Resources | undefined): Omit<MachineSpec, 'tags' | 'clients'> {
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
    role: 'replica',
  };
}
