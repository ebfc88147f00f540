import { placeName } from '../../domain/place-name.ts';
import type { MachineId, MachineNode, Provider } from '../../providers/provider.ts';
import type { JobStatus } from '../../provision/job.ts';
import { machineNodes, watchNodes, type NodesStatus } from '../../provision/node-jobs.ts';
import { memorySize } from '../../shared/memory-size.ts';
import type { PlaceRecord } from '../../store/records.ts';
import { keepJobLog, linePrefix, type JobLog } from '../job-log.ts';
import { lastLines } from '../kept-log.ts';
import { lossOf } from './machine-loss.ts';
import { redactor } from './redact.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { jobName } from './replica-job.ts';
import type { WatchOutcome } from './replica-watch.ts';
import type { ServiceContext } from './service-context.ts';
import { tolerantly } from './tolerantly.ts';

/** Where a replica is. */
export interface ReplicaMachine {
  readonly provider: Provider;
  readonly place: PlaceRecord;
  readonly machineId: MachineId;
  readonly numNodes: number;
}

/** Pause before a machine that does not answer is asked about its job again, ms. */
const silentPauseMs = 2_000;

/**
 * Follows the program of a replica on all its nodes, and keeps its log, until it has ended or its machine is gone, or the signal aborts. `onRun` is told
 * when it runs.
 */
export async function followProgram(
  context: ServiceContext,
  handle: ReplicaHandle,
  machine: ReplicaMachine,
  onRun: () => void,
  signal: AbortSignal,
): Promise<WatchOutcome | undefined> {
  let found: { readonly nodes: readonly MachineNode[]; readonly log: JobLog } | undefined;
  const begin = async (): Promise<{ readonly nodes: readonly MachineNode[]; readonly log: JobLog }> => {
    const nodes = await machineNodes(machine.provider, machine.machineId, machine.numNodes, signal);
    const onError = (error: unknown): void => context.log.warn({ err: error, replica: handle.id }, 'cannot keep its log');
    return { nodes, log: keepJobLog(nodes, jobName, context.files.jobLog(handle.id), { clock: context.clock, onError }, signal) };
  };
  const untilJobEnds = async (): Promise<WatchOutcome | undefined> => {
    const { nodes, log } = (found ??= await begin());
    for await (const status of watchNodes(nodes, jobName, signal, { clock: context.clock, endsWith: 'any' })) {
      log.refresh();
      if (status.phase === 'run' && handle.record.startedAt === null) {
        await handle.note({ startedAt: context.clock.now() }, { cause: 'run-started', message: 'The program was started.' });
        onRun();
      }
      if (isGoingOn(status)) continue;
      // Without a record of an end it may be the machine that is gone, not the program.
      const fate = status.phase === 'ended' ? undefined : await machineFate(machine, signal);
      if (fate !== undefined) return fate;
      await log.untilKept(status.rank);
      return { cause: 'program-failed', ...(await explainEnd(context, handle, nodes, status, signal)) };
    }
    return undefined;
  };
  try {
    while (!signal.aborted) {
      const outcome = await tolerantly(untilJobEnds, context, handle, signal);
      if (outcome !== undefined || signal.aborted) return outcome;
      await context.clock.sleep(silentPauseMs, signal);
    }
    return undefined;
  } finally {
    if (signal.aborted) await found?.log.ended;
  }
}

const isGoingOn = ({ phase }: JobStatus): boolean => phase === 'setup' || phase === 'waiting' || phase === 'run';

/** Why a machine is gone; undefined while it is there. */
export async function machineFate({ provider, place, machineId }: ReplicaMachine, signal: AbortSignal): Promise<WatchOutcome | undefined> {
  const status = (await provider.inspect([machineId], { signal })).get(machineId);
  const loss = status?.state === 'gone' ? lossOf(status, `Its machine ${machineId} at ${placeName(place)}`) : undefined;
  return loss?.type === 'gone' ? { cause: loss.cause, reason: loss.reason, killed: true } : undefined;
}

/** How many lines of the log stand in a reason. */
const shownLines = 5;

async function explainEnd(
  context: ServiceContext,
  handle: ReplicaHandle,
  nodes: readonly MachineNode[],
  status: NodesStatus,
  signal: AbortSignal,
): Promise<Pick<WatchOutcome, 'reason' | 'killed'>> {
  const redact = redactor(await context.task(handle.record.version));
  const node = nodes.find(({ rank }) => rank === status.rank);
  const isGroup = nodes.length > 1 && node !== undefined;
  const prefix = isGroup ? linePrefix(node) : '';
  // Other nodes may have written more than the one that ended.
  const lines = lastLines(context.files.jobLog(handle.id), 2 * shownLines * nodes.length).filter((line) => line.startsWith(prefix));
  const own = lines
    .map((line) => line.slice(prefix.length))
    .filter((line) => !line.startsWith('[svc '))
    .slice(-shownLines);
  const tail = own.length === 0 ? ' It wrote no output.' : ` Its last output:\n${own.map((line) => `  ${redact(line)}`).join('\n')}`;
  const where = isGroup ? ` on rank ${node.rank} (${node.ip})` : '';
  if (status.phase !== 'ended') return { reason: `Its processes${where} were lost.${tail}`, killed: true };
  const what = `Its ${status.failedPhase === 'setup' ? 'setup' : 'run'}${where}`;
  return { reason: `${what} ${await howItEnded(status, node, signal)}.${tail}`, killed: status.signal === 'SIGKILL' };
}

async function howItEnded({ signal: killedBy, exitCode }: JobStatus, node: MachineNode | undefined, signal: AbortSignal): Promise<string> {
  if (killedBy === undefined) return `ended with exit code ${exitCode ?? '?'}`;
  // A machine that does not say so now will not say it later either.
  const memory = killedBy === 'SIGKILL' ? await node?.remote.memoryKills?.({ signal }).catch(() => undefined) : undefined;
  if (memory === undefined || memory.kills === 0) return `was ended by ${killedBy}`;
  return `was killed for want of memory${memory.limitBytes === undefined ? '' : ` (limit ${memorySize(memory.limitBytes)})`}`;
}
