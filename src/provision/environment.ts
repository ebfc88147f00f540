import type { Task } from '../domain/task.ts';

/** The facts about a replica that `setup` and `run` can read. */
export interface ReplicaIdentity {
  /** Name of the service or the cluster. */
  readonly owner: string;
  readonly replicaId: number | undefined;
  readonly taskId: string;
  readonly port: number | undefined;
  /** Accelerators of the machine; with several nodes, of each node. */
  readonly gpus: number;
  /** The node's rank, and the addresses of all nodes by rank. A single node has its loopback address. */
  readonly node: { readonly rank: number; readonly ips: readonly string[] };
}

/**
 * Environment of a task's commands: the file's `envs` and `secrets` (secrets win, as in SkyPilot), then svc's
 * variables. Each svc variable also has its SkyPilot name, so that programs written for SkyPilot work unchanged.
 */
export function taskEnvironment(task: Task, identity: ReplicaIdentity): Readonly<Record<string, string>> {
  const gpus = String(identity.gpus);
  const { rank, ips } = identity.node;
  const nodeRank = String(rank);
  const nodeIps = ips.join('\n');
  const numNodes = String(ips.length);
  return {
    ...task.envs,
    ...task.secrets,
    SVC_NUM_GPUS_PER_NODE: gpus,
    SVC_NODE_RANK: nodeRank,
    SVC_NODE_IPS: nodeIps,
    SVC_NUM_NODES: numNodes,
    SVC_TASK_ID: identity.taskId,
    SVC_SERVICE_NAME: identity.owner,
    SKYPILOT_NUM_GPUS_PER_NODE: gpus,
    SKYPILOT_NODE_RANK: nodeRank,
    SKYPILOT_NODE_IPS: nodeIps,
    SKYPILOT_NUM_NODES: numNodes,
    SKYPILOT_TASK_ID: identity.taskId,
    SKYPILOT_SETUP_NUM_GPUS_PER_NODE: gpus,
    SKYPILOT_SETUP_NODE_RANK: nodeRank,
    SKYPILOT_SETUP_NODE_IPS: nodeIps,
    ...(identity.port === undefined ? {} : { SVC_REPLICA_PORT: String(identity.port) }),
    ...(identity.replicaId === undefined
      ? {}
      : { SVC_REPLICA_ID: String(identity.replicaId), SKYPILOT_SERVE_REPLICA_ID: String(identity.replicaId) }),
  };
}
