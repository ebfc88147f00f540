import { isAlive, type EndCause } from '../../domain/replica-state.ts';
import { judgeProbe, mayStepAside, nextProbeMs, slowProbeMs } from '../../domain/probe.ts';
import { assertMachineId, type MachineId, type Provider } from '../../providers/provider.ts';
import { jobLogPath, watchJob, type JobStatus } from '../../provision/job.ts';
import { SvcError } from '../../shared/errors.ts';
import { followLog, lastLines, linkLog, untilKept } from '../kept-log.ts';
import { jobName } from './replica-job.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { redactor } from './redact.ts';
import { openWay, type Way } from './replica-way.ts';
import { rotationMember } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';

/** What watching can lead to: the replica's end, asked for with a reason. */
export interface WatchOutcome {
  readonly cause: EndCause;
  readonly reason: string;
  /** It was killed from outside rather than ending by itself. */
  readonly killed: boolean;
}

/** A running replica under watch. `probeNow` asks it again at once, when somebody saw it misbehave. */
export interface ReplicaWatch {
  probeNow(): void;
  /** Settles with why the replica is to end, or undefined when the signal aborted. */
  readonly outcome: Promise<WatchOutcome | undefined>;
}

/** Follows a replica whose program was started: its processes, its log and its readiness. */
export function watchReplica(context: ServiceContext, handle: ReplicaHandle, signal: AbortSignal): ReplicaWatch {
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  let nap = new AbortController();
  const outcome = async (): Promise<WatchOutcome | undefined> => {
    const { address, place, machineId, version } = handle.record;
    if (address === null || place === null || machineId === null) {
      return { cause: 'provision', reason: 'Its record has no machine or address.', killed: false };
    }
    const provider = await context.provider(place.provider);
    assertMachineId(machineId);
    // A place or a machine that does not answer says nothing about the replica: its probes do.
    const gone = await tolerantly(() => machineFate(provider, machineId, both), context, handle, both);
    if (gone !== undefined) return gone;
    const remote = provider.remote(machineId);
    const log = context.files.jobLog(handle.id);
    const warn = (error: unknown): void => context.log.warn({ err: error, replica: handle.id }, 'cannot keep its log');
    const source = jobLogPath(remote, jobName);
    const following = linkLog(remote, source, log) ? undefined : followLog(remote, source, log, both).catch(warn);
    const { service } = await context.task(version);
    if (service === undefined) return undefined;
    const untilJobEnds = async (): Promise<WatchOutcome | undefined> => {
      for await (const status of watchJob(remote, jobName, both, { clock: context.clock })) {
        linkLog(remote, source, log);
        if (status.phase === 'run' && handle.record.startedAt === null) {
          await handle.note({ startedAt: context.clock.now() }, { cause: 'run-started', message: 'The program was started.' });
          nap.abort();
        }
        if (status.phase === 'setup' || status.phase === 'run') continue;
        // Without a record of an end it may be the machine that is gone, not the program.
        const fate = status.phase === 'ended' ? undefined : await machineFate(provider, machineId, both);
        if (fate !== undefined) return fate;
        await untilKept(remote, source, log, context.clock, both);
        return { cause: 'program-failed', ...(await explainEnd(context, handle, status)) };
      }
      return undefined;
    };
    const jobEnd = async (): Promise<WatchOutcome | undefined> => {
      while (!both.aborted) {
        const found = await tolerantly(untilJobEnds, context, handle, both);
        if (found !== undefined || both.aborted) return found;
        await context.clock.sleep(silentPauseMs, both);
      }
      return undefined;
    };
    const way = openWay(handle, address, remote, service.replicaPort);
    const probing = async (): Promise<WatchOutcome | undefined> => {
      while (!both.aborted) {
        const found = await probeOnce(context, handle, way, both);
        if (found !== undefined) return found;
        const sinceStart = context.clock.now() - (handle.record.startedAt ?? context.clock.now());
        nap = new AbortController();
        await context.clock.sleep(nextProbeMs(handle.state, sinceStart, service.readinessProbe), AbortSignal.any([both, nap.signal]));
      }
      return undefined;
    };
    try {
      // Whichever ends first ends the other, which then has nothing to say.
      const found = await Promise.all([jobEnd().finally(() => over.abort()), probing().finally(() => over.abort())]);
      return found.find((one) => one !== undefined);
    } finally {
      over.abort();
      await following;
    }
  };
  return { probeNow: () => nap.abort(), outcome: outcome() };
}

/** Pause before a machine that does not answer is asked about its job again, ms. */
const silentPauseMs = 2_000;

/** What a look at a machine or its place found; nothing when they could not be looked at now. Throws what is no passing failure. */
async function tolerantly(
  look: () => Promise<WatchOutcome | undefined>,
  { log }: ServiceContext,
  { id }: ReplicaHandle,
  signal: AbortSignal,
): Promise<WatchOutcome | undefined> {
  try {
    return await look();
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!(error instanceof SvcError) || error.kind !== 'transient') throw error;
    log.warn({ code: error.code, replica: id }, 'a machine, or its place, does not answer');
    return undefined;
  }
}

/** How long a state waits for the balancer to confirm, ms; a balancer that is being restarted learns the set when it is back. */
const rotationTimeoutMs = 500;

/** One probe and what follows from it; a decided end is returned. */
async function probeOnce(context: ServiceContext, handle: ReplicaHandle, way: Way, signal: AbortSignal): Promise<WatchOutcome | undefined> {
  // While setup runs there is nothing to ask, and the initial delay does not count.
  if (handle.record.startedAt === null) return undefined;
  const { service } = await context.task(handle.record.version);
  if (service === undefined) return undefined;
  const member = rotationMember(handle.record, way.address, service);
  const slow = context.clock.after(slowProbeMs, () => {
    // It may hang: others serve while its answer is awaited.
    const { replicas } = context.rotation;
    const serving = replicas.filter((one) => one.state === 'serving').length;
    if (handle.state === 'READY' && mayStepAside(serving, replicas.length)) context.rotation.drain(member);
  });
  const redact = redactor(await context.task(handle.record.version));
  const given = await context.probe(way.address, service, signal);
  // The path may hold a secret.
  const answer = { ...given, detail: redact(given.detail) };
  slow();
  if (signal.aborted) return undefined;
  const verdict = judgeProbe(handle.record, answer.passed, service.readinessProbe, context.clock.now());
  const change = { firstProbeFailureAt: verdict.firstProbeFailureAt };
  if (verdict.event?.type === 'stop-requested') {
    const span =
      verdict.event.cause === 'initial-delay' ? service.readinessProbe.initialDelaySeconds : service.readinessProbe.failureThresholdSeconds;
    return { cause: verdict.event.cause, reason: `It was not ready for ${span} s: ${answer.detail}.`, killed: false };
  }
  // The balancer first: a status that says READY must not be ahead of the endpoint, nor one that says NOT_READY behind it.
  if (answer.passed) {
    // The balancer never learns of a way that served only until then.
    if (handle.state === 'STARTING') await way.settle(signal);
    context.rotation.serve(rotationMember(handle.record, way.address, service));
    await context.rotation.settled(rotationTimeoutMs);
  } else context.rotation.remove(handle.id);
  if (verdict.event !== undefined) {
    const happened = await handle.happen(verdict.event, { cause: verdict.event.type, message: `${answer.detail}.` }, change);
    if (happened && handle.state === 'READY') await rememberReady(context);
  }
  if (answer.passed) await clearComplaint(handle);
  else await complain(handle, answer.detail, verdict.firstProbeFailureAt ?? context.clock.now(), context.clock.now());
  if (handle.record.firstProbeFailureAt !== verdict.firstProbeFailureAt) await handle.note(change);
  // Meanwhile it may have been sent on its way out.
  if (!isAlive(handle.state)) context.rotation.drain(member);
  return undefined;
}

/** A program that has just been started is not there yet as a rule: only after so long is it worth a word, ms. */
const patienceMs = 5_000;

/** Tells, once for each new answer, why a replica is not ready. */
async function complain(handle: ReplicaHandle, detail: string, since: number, now: number): Promise<void> {
  const reason = `Not ready: ${detail}.`;
  if (handle.record.reason === reason || (handle.state === 'STARTING' && now - since < patienceMs)) return;
  await handle.note({ reason }, { cause: 'probe-answer', message: reason });
}

async function clearComplaint(handle: ReplicaHandle): Promise<void> {
  if (handle.record.reason !== null && handle.state === 'READY') await handle.note({ reason: null });
}

/** A ready replica shows that the program works. */
async function rememberReady(context: ServiceContext): Promise<void> {
  await context.changeService((service) =>
    service.firstReadyAt !== null && !service.memory.gaveUp
      ? undefined
      : { firstReadyAt: service.firstReadyAt ?? context.clock.now(), memory: { ...service.memory, gaveUp: false } },
  );
}

/** Why a machine is gone; undefined while it is there. */
async function machineFate(provider: Provider, id: MachineId, signal: AbortSignal): Promise<WatchOutcome | undefined> {
  const status = (await provider.inspect([id], { signal })).get(id);
  if (status?.state !== 'gone') return undefined;
  const cause = status.reason === 'preempted' ? 'preempted' : 'machine-lost';
  return { cause, reason: `Its machine ${id} of ${provider.name} is gone (${status.reason}).`, killed: true };
}

/** How many lines of the log stand in a reason. */
const shownLines = 5;

async function explainEnd(
  context: ServiceContext,
  handle: ReplicaHandle,
  status: JobStatus,
): Promise<Pick<WatchOutcome, 'reason' | 'killed'>> {
  const redact = redactor(await context.task(handle.record.version));
  const lines = lastLines(context.files.jobLog(handle.id), 2 * shownLines);
  const own = lines.filter((line) => !line.startsWith('[svc ')).slice(-shownLines);
  const tail = own.length === 0 ? ' It wrote no output.' : ` Its last output:\n${own.map((line) => `  ${redact(line)}`).join('\n')}`;
  if (status.phase !== 'ended') return { reason: `Its processes were lost.${tail}`, killed: true };
  const what = status.failedPhase === 'setup' ? 'setup' : 'run';
  const how = status.signal === undefined ? `ended with exit code ${status.exitCode ?? '?'}` : `was ended by ${status.signal}`;
  return { reason: `Its ${what} ${how}.${tail}`, killed: status.signal === 'SIGKILL' };
}
