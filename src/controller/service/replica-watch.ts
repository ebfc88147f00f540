import { isAlive, type EndCause } from '../../domain/replica-state.ts';
import { judgeProbe, mayStepAside, nextProbeMs, slowProbeMs } from '../../domain/probe.ts';
import { assertMachineId } from '../../providers/provider.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { redactor } from './redact.ts';
import { followProgram, machineFate } from './replica-program.ts';
import { openWay, type Way } from './replica-way.ts';
import { rotationMember } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';
import { tolerantly } from './tolerantly.ts';

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
    const { service, numNodes } = await context.task(version);
    if (service === undefined) return undefined;
    const provider = await context.provider(place.provider);
    assertMachineId(machineId);
    const machine = { provider, place, machineId, numNodes };
    // A place or a machine that does not answer says nothing about the replica: its probes do.
    const gone = await tolerantly(() => machineFate(machine, both), context, handle, both);
    if (gone !== undefined) return gone;
    const way = openWay(handle, address, provider.remote(machineId), service.replicaPort);
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
    const program = followProgram(context, handle, machine, () => nap.abort(), both);
    try {
      // Whichever ends first ends the other, which then has nothing to say.
      const found = await Promise.all([program.finally(() => over.abort()), probing().finally(() => over.abort())]);
      return found.find((one) => one !== undefined);
    } finally {
      over.abort();
    }
  };
  return { probeNow: () => nap.abort(), outcome: outcome() };
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
  } else {
    context.rotation.remove(handle.id);
    await way.repair(context.clock, signal);
  }
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
