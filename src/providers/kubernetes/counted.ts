import type { ContainerSpec, ContainerStatus, Pod } from '../../kubernetes/pod.ts';
import type { Node } from './objects.ts';

/** The fields of a pod that svc reads; dropping the rest keeps long lists small. */
export function countedPod({ metadata, spec = {}, status = {} }: Pod): Pod {
  const { name, uid, resourceVersion } = metadata;
  const { nodeName, overhead, resources, containers = [], initContainers = [] } = spec;
  const { phase, conditions = [], containerStatuses = [], initContainerStatuses = [] } = status;
  return {
    metadata: { name, uid, resourceVersion },
    spec: {
      ...(nodeName !== undefined && { nodeName }),
      ...(overhead !== undefined && { overhead }),
      ...(resources !== undefined && { resources }),
      containers: containers.map((one) => described(one)),
      initContainers: initContainers.map((one) => described(one)),
    },
    status: {
      ...(phase !== undefined && { phase }),
      conditions: conditions.filter(({ type }) => type === 'PodResizePending'),
      containerStatuses: containerStatuses.map((one) => seen(one)),
      initContainerStatuses: initContainerStatuses.map((one) => seen(one)),
    },
  };
}

/** The fields of a node that svc reads. The rest, such as images, is most of a node's size. */
export function countedNode({ metadata, spec = {}, status = {} }: Node): Node {
  const { name, uid, resourceVersion, labels, deletionTimestamp } = metadata;
  const { unschedulable, taints } = spec;
  const { allocatable, conditions } = status;
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      ...(labels !== undefined && { labels }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    spec: { ...(unschedulable !== undefined && { unschedulable }), ...(taints !== undefined && { taints }) },
    status: { ...(allocatable !== undefined && { allocatable }), ...(conditions !== undefined && { conditions }) },
  };
}

function described({ name, restartPolicy, resources }: ContainerSpec): ContainerSpec {
  return {
    ...(name !== undefined && { name }),
    ...(restartPolicy !== undefined && { restartPolicy }),
    ...(resources !== undefined && { resources }),
  };
}

function seen({ name, resources, allocatedResources }: ContainerStatus): ContainerStatus {
  return {
    name,
    ...(resources !== undefined && { resources }),
    ...(allocatedResources !== undefined && { allocatedResources }),
  };
}
