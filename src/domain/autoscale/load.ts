/** What a decision about the number of replicas is made from. */
export interface ServiceLoad {
  /** Requests that arrived in the last minute, whatever became of them. */
  readonly requestsInWindow: number;
  /** Requests that wait for a replica or are under way at one. */
  readonly busy: number;
  readonly fleet: Fleet;
}

/** What the replicas can take, requests per second each; for services that give a target for each accelerator. */
export interface Fleet {
  /** Of the living replicas, the one first that would be kept longest (`keepOrder` in `domain/plan.ts`). */
  readonly living: readonly number[];
  /** Of one that is still to come, more than 0. */
  readonly toCome: number;
}
