import type { Resources, Task } from '../domain/task.ts';
import type { MachineSpec } from '../providers/provider.ts';
import { followsPort, servedPorts } from './replica-ports.ts';

/** What is wanted of the machine of a replica, as far as its task and the alternative of the resources that it is for say. */
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
    placeConfig: task.placeConfig,
    role: 'replica',
  };
}
