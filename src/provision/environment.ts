import type { Task } from '../domain/task.ts';

/** What `run` and `setup` can know of where they are. */
export interface ReplicaIdentity {
  /** A service's or a cluster's name. */
  readonly owner: string;
  readonly replicaId: number | undefined;
  readonly taskId: string;
  readonly port: number | undefined;
  /** Accelerators of the machine it is on; of each of its nodes, where it has several. */
  readonly gpus: number;
  /** Which of its nodes it is on, and how these reach each other, by rank; a single one reaches itself on its own loopback. */
  readonly node: { readonly rank: number; readonly ips: readonly string[] };
}

/**
 * The variables a task's commands see: the file's own envs and secrets (secrets win, as in SkyPilot), then ours, each under the name
 * SkyPilot gives it as well, so that programs written for it work unchanged.
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
