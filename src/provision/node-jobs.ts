import type { MachineId, MachineNode, Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { letRun, stopJob, watchJob, type JobStatus, type StopOptions, type WatchOptions } from './job.ts';

/** A job's status over all its nodes. After an end, `rank` is the node that decided it. */
export interface NodesStatus extends JobStatus {
  readonly rank: number;
}

/** Options for watching a job of several nodes. */
export interface WatchNodesOptions extends WatchOptions {
  /** The job has ended: `any`: when it ended on one node; `all`: when it failed on one, or ended on all. */
  readonly endsWith: 'any' | 'all';
}

/**
 * The first nodes by rank. A single node needs no call. Throws SVC_MACHINE_LOST when the machine has fewer nodes, and
 * SVC_NOT_SUPPORTED where machines have one node each.
 */
export async function machineNodes(
  provider: Pick<Provider, 'name' | 'remote' | 'nodes'>,
  machineId: MachineId,
  count: number,
  signal?: AbortSignal,
): Promise<readonly MachineNode[]> {
  if (count === 1) return [{ rank: 0, ip: '127.0.0.1', remote: provider.remote(machineId) }];
  if (provider.nodes === undefined)
    throw new SvcError('SVC_NOT_SUPPORTED', `Machines of ${provider.name} have one node each, and ${count} are wanted (num_nodes).`);
  const nodes = await provider.nodes(machineId, signal === undefined ? {} : { signal });
  if (nodes.length < count)
    throw new SvcError('SVC_MACHINE_LOST', `Machine ${machineId} of ${provider.name} has ${nodes.length} of ${count} nodes.`);
  return nodes.toSorted((a, b) => a.rank - b.rank).slice(0, count);
}

/**
 * Yields each change of a job's status over all nodes. Ends after `ended` or `lost`, or when the signal aborts. Starts
 * `run` when all nodes are prepared, also after a crash.
 */
export async function* watchNodes(
  nodes: readonly MachineNode[],
  name: string,
  signal: AbortSignal,
  { endsWith, ...options }: WatchNodesOptions,
): AsyncGenerator<NodesStatus> {
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  const changes = new Changes(both);
  for (const { rank, remote } of nodes) {
    const follow = async (): Promise<void> => {
      for await (const status of watchJob(remote, name, both, options)) changes.add({ ...status, rank });
    };
    void follow().catch((error: unknown) => changes.fail(error));
  }
  const latest = new Map<number, NodesStatus>();
  let last: JobStatus['phase'] | undefined;
  try {
    for await (const change of changes.all()) {
      latest.set(change.rank, change);
      const status = statusOfAll([...latest.values()], nodes.length, change, endsWith);
      if (status === undefined || status.phase === last) continue;
      last = status.phase;
      yield status;
      if (status.phase === 'ended' || status.phase === 'lost') return;
      if (status.phase === 'waiting') await Promise.all(nodes.map(({ remote }) => letRun(remote, name)));
    }
  } finally {
    over.abort();
  }
}

/** Undefined while some statuses are unknown. Pure. */
function statusOfAll(
  known: readonly NodesStatus[],
  nodes: number,
  change: NodesStatus,
  endsWith: WatchNodesOptions['endsWith'],
): NodesStatus | undefined {
  const { phase, exitCode } = change;
  // The first end is the cause: other nodes usually fail because this one is gone.
  if (phase === 'lost' || (phase === 'ended' && (endsWith === 'any' || exitCode !== 0))) return change;
  const [first] = known.toSorted((a, b) => a.rank - b.rank);
  if (known.length < nodes || first === undefined) return undefined;
  const has = (expected: JobStatus['phase']): NodesStatus | undefined => known.find((status) => status.phase === expected);
  return has('absent') ?? has('setup') ?? has('waiting') ?? has('run') ?? first;
}

class Changes {
  readonly #signal: AbortSignal;
  readonly #queue: NodesStatus[] = [];
  #error: { readonly thrown: unknown } | undefined;
  #wake = (): void => undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  add(change: NodesStatus): void {
    this.#queue.push(change);
    this.#wake();
  }

  fail(thrown: unknown): void {
    this.#error ??= { thrown };
    this.#wake();
  }

  async *all(): AsyncGenerator<NodesStatus> {
    while (!this.#signal.aborted) {
      const next = this.#queue.shift();
      if (next !== undefined) yield next;
      else if (this.#error !== undefined) throw this.#error.thrown;
      else {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
      }
    }
  }
}

/** As `stopJob`, on all nodes at once. Throws for a node that does not answer, after the others were stopped. */
export async function stopNodes(nodes: readonly MachineNode[], name: string, options: StopOptions): Promise<boolean> {
  const stopped = await Promise.allSettled(nodes.map(({ remote }) => stopJob(remote, name, options)));
  for (const one of stopped) if (one.status === 'rejected') throw one.reason;
  return stopped.some((one) => one.status === 'fulfilled' && one.value);
}

/** For logs, as in SkyPilot: `head, rank=0` or `worker1, rank=1, ip=10.0.0.2`. */
export function nodeLabel({ rank, ip }: Pick<MachineNode, 'rank' | 'ip'>): string {
  return rank === 0 ? 'head, rank=0' : `worker${rank}, rank=${rank}, ip=${ip}`;
}
