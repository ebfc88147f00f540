import { locationName } from '../../domain/location-name.ts';
import type { ReplicaEnd } from '../../domain/replica/replica-report.ts';
import type { MachineId, MachineNode, Provider } from '../../providers/provider.ts';
import { jobStatus, type JobStatus } from '../../provision/job.ts';
import { type NodesStatus, machineNodes, watchNodes } from '../../provision/node-jobs.ts';
import { memorySize } from '../../shared/units.ts';
import type { OfferRecord, ReplicaRecord } from '../../domain/records.ts';
import { type JobLog, keepJobLog, linePrefix } from '../job-log.ts';
import { lastLines } from '../kept-log.ts';
import { lossOf, replicaTags } from '../../provision/recorded-machines.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import type { ServiceContext } from './service-context.ts';
import type { ErrorKind } from '../../shared/error-codes.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Task } from '../../domain/task.ts';
import { redact } from '../../shared/text.ts';

interface ReplicaMachine {
  readonly provider: Provider;
  readonly offer: OfferRecord;
  readonly machineId: MachineId;
  readonly numNodes: number;
}

/** Delay before an unreachable machine is asked about its job again, ms. */
const silentPauseMs = 2_000;

/** Follows a replica's program on all nodes and keeps its log. Returns why it ended; undefined after an abort. */
export async function followProgram(
  context: ServiceContext,
  handle: ReplicaHandle,
  machine: ReplicaMachine,
  onRun: () => void,
  signal: AbortSignal,
): Promise<ReplicaEnd | undefined> {
  let found: { readonly nodes: readonly MachineNode[]; readonly log: JobLog } | undefined;
  const begin = async (): Promise<{ readonly nodes: readonly MachineNode[]; readonly log: JobLog }> => {
    const nodes = await machineNodes(machine.provider, machine.machineId, machine.numNodes, signal);
    const onError = (error: unknown): void => context.log.warn({ err: error, replica: handle.id }, 'cannot keep its log');
    return { nodes, log: keepJobLog(nodes, jobName, context.files.jobLog(handle.id), { clock: context.clock, onError }, signal) };
  };
  const untilJobEnds = async (): Promise<ReplicaEnd | undefined> => {
    const { nodes, log } = (found ??= await begin());
    for await (const status of watchNodes(nodes, jobName, signal, { clock: context.clock, endsWith: 'any' })) {
      log.refresh();
      if (status.phase === 'run' && handle.record.startedAt === null) {
        await handle.patch({ startedAt: context.clock.now() }, { cause: 'run-started', message: 'The program was started.' });
        onRun();
      }
      if (isGoingOn(status)) continue;
      // Without a recorded end, the machine may be gone rather than the program.
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

/** Returns why a machine is gone; undefined while it exists. */
export async function machineFate({ provider, offer, machineId }: ReplicaMachine, signal: AbortSignal): Promise<ReplicaEnd | undefined> {
  const status = (await provider.inspect([machineId], { signal })).get(machineId);
  const loss = status?.state === 'gone' ? lossOf(status, `Its machine ${machineId} at ${locationName(offer)}`) : undefined;
  return loss?.type === 'gone' ? { cause: loss.cause, reason: loss.reason, killed: true } : undefined;
}

/** Number of log lines quoted in a reason. */
const shownLines = 5;

async function explainEnd(
  context: ServiceContext,
  handle: ReplicaHandle,
  nodes: readonly MachineNode[],
  status: NodesStatus,
  signal: AbortSignal,
): Promise<Pick<ReplicaEnd, 'reason' | 'killed'>> {
  const redactLine = redactor(await context.task(handle.record.version));
  const node = nodes.find(({ rank }) => rank === status.rank);
  const isGroup = nodes.length > 1 && node !== undefined;
  const prefix = isGroup ? linePrefix(node) : '';
  // Other nodes may have written more than the ended one.
  const lines = lastLines(context.files.jobLog(handle.id), 2 * shownLines * nodes.length).filter((line) => line.startsWith(prefix));
  const own = lines
    .map((line) => line.slice(prefix.length))
    .filter((line) => !line.startsWith('[svc '))
    .slice(-shownLines);
  const tail = own.length === 0 ? ' It wrote no output.' : ` Its last output:\n${own.map((line) => `  ${redactLine(line)}`).join('\n')}`;
  const where = isGroup ? ` on rank ${node.rank} (${node.ip})` : '';
  if (status.phase !== 'ended') return { reason: `Its processes${where} were lost.${tail}`, killed: true };
  const what = `Its ${status.failedPhase === 'setup' ? 'setup' : 'run'}${where}`;
  return { reason: `${what} ${await howItEnded(status, node, signal)}.${tail}`, killed: status.signal === 'SIGKILL' };
}

async function howItEnded({ signal: killedBy, exitCode }: JobStatus, node: MachineNode | undefined, signal: AbortSignal): Promise<string> {
  // As when a script starts its server in the background.
  if (exitCode === 0) return 'ended with exit code 0 (the program of a service must stay in the foreground)';
  if (killedBy === undefined) return `ended with exit code ${exitCode ?? '?'}`;
  // A machine that does not answer this now will not answer it later either.
  const memory = killedBy === 'SIGKILL' ? await node?.remote.memoryKills?.({ signal }).catch(() => undefined) : undefined;
  if (memory === undefined || memory.kills === 0) return `was ended by ${killedBy}`;
  return `was killed: out of memory (OOM)${memory.limitBytes === undefined ? '' : ` (limit ${memorySize(memory.limitBytes)})`}`;
}

/** Name of the one job on a replica's machine. */
export const jobName = 'main';

/** Failures that say nothing about the machine. Without a permission, probes decide until it is granted again. */
const passing: readonly ErrorKind[] = ['transient', 'unauthenticated'];

/** Calls a machine or its provider. Returns undefined after a transient failure; rethrows others. */
export async function tolerantly<Found>(
  call: () => Promise<Found | undefined>,
  { log }: Pick<ServiceContext, 'log'>,
  { id }: Pick<ReplicaHandle, 'id'>,
  signal: AbortSignal,
): Promise<Found | undefined> {
  try {
    return await call();
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!(error instanceof SvcError) || !passing.includes(error.kind)) throw error;
    log.warn({ code: error.code, replica: id }, 'a machine or its provider does not answer or denies access');
    return undefined;
  }
}

/** Variables with such names are hidden in all output, although they stand under `envs`. */
const secretName = /token|secret|passw|passphrase|credential|api_?key|private|auth/i;

/** Shorter lines of a longer value reveal little and occur in other text. */
const shortestLine = 8;

/** Returns a function that hides the task's secrets in a text, such as the last lines of a program's log. */
export function redactor(task: Task): (text: string) => string {
  const values = [
    ...Object.values(task.secrets),
    ...Object.entries(task.envs).flatMap(([name, value]) => (secretName.test(name) ? [value] : [])),
  ];
  // The single lines of a multi-line key must be hidden as well.
  const lines = values.flatMap((value) => value.split('\n').filter((line) => value.includes('\n') && line.length >= shortestLine));
  return (text) => redact(text, [...values, ...lines]);
}

/** How long a provider may take to report on a replica, ms. Without an answer, it stays in the endpoint set. */
const askMs = 2_000;
const noAnswer = (): Error => new Error(`no answer within ${askMs / 1_000} s`);

/**
 * Asks the providers after a restart whether the ready replicas still run. The first endpoint set is already published;
 * this removes dead replicas from it and from listings at once. The reconciler decides later what happens to them.
 */
export async function checkReadyReplicas(context: ServiceContext, handles: readonly ReplicaHandle[]): Promise<void> {
  const ready = handles.filter(({ state, record }) => state === 'READY' && record.address !== null);
  await Promise.all(ready.map((handle) => check(context, handle)));
}

async function check(context: ServiceContext, handle: ReplicaHandle): Promise<void> {
  if (await mayLive(context, handle.record)) return;
  context.reports.report(handle.id, { isGone: true });
  const message = 'Its program ended while no reconciler ran.';
  await handle.transition({ type: 'probe-failed' }, { cause: 'found-dead', message });
}

async function mayLive(context: ServiceContext, replica: ReplicaRecord): Promise<boolean> {
  try {
    return await withDeadline(context.clock, askMs, (signal) => isRunning(context, replica, signal), noAnswer, context.background);
  } catch (error) {
    context.log.warn({ err: error }, 'could not ask a provider about a replica');
    return true;
  }
}

async function isRunning(context: ServiceContext, { id, version, offer, machineId }: ReplicaRecord, signal: AbortSignal): Promise<boolean> {
  if (offer === null) return false;
  const provider = await context.provider(offer.provider);
  const machines = await provider.list(replicaTags(context, id), { signal });
  const machine = machines.find((one) => one.id === machineId);
  if (machine === undefined) return false;
  const { numNodes } = await context.task(version);
  const nodes = await machineNodes(provider, machine.id, numNodes, signal);
  const statuses = await Promise.all(nodes.map(({ remote }) => jobStatus(remote, jobName)));
  return statuses.every(({ phase }) => phase === 'run');
}
