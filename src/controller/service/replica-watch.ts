import type { SuspectReason } from '../../domain/balancer-link.ts';
import { engineReadIntervalMs } from '../../domain/engine-metrics.ts';
import type { ReplicaEnd } from '../../domain/replica/replica-report.ts';
import {
  hungProbeMs,
  judgeProbe,
  judgeSlowProbe,
  needsProbe,
  nextProbeMs,
  silenceReportMs,
  slowProbeMs,
} from '../../domain/replica/probe.ts';
import { stillAnswers } from '../../domain/replica/silent-machines.ts';
import type { ServiceSpec } from '../../domain/task.ts';
import { assertMachineId } from '../../providers/provider.ts';
import type { ProbeAnswer } from './probe-request.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { followProgram, machineFate, redactor, tolerantly } from './replica-program.ts';
import { wakeEngine } from './replica-sleep.ts';
import type { ServiceContext } from './service-context.ts';
import type { Remote } from '../../remote/remote.ts';
import { whyClosed } from '../../remote/tcp-table.ts';
import type { Clock } from '../../shared/clock.ts';
import { ended, linkedController, withDeadline } from '../../shared/deadline.ts';
import { type ReplicaAddress, describeAddress } from '../../shared/replica-address.ts';

/** A running replica under watch. */
export interface ReplicaWatch {
  probeNow(): void;
  suspect(reason: SuspectReason): void;
  /** Whether a ready replica still answers: false while a probe waits longer than answers take. */
  readonly answers: boolean;
  /** Settles with the reason why the replica must end, or undefined when the signal aborted. */
  readonly outcome: Promise<ReplicaEnd | undefined>;
}

/** Times are monotonic ms. */
interface ProbeTimes {
  /** Whether its engine is known not to sleep. */
  isAwake: boolean;
  /** When the current probe was sent; undefined between probes. */
  askedAt: number | undefined;
  lastPassed: boolean;
  /** Duration of the last passed probe. */
  lastTookMs: number;
  endedAt: number;
  /** When a balancer last reported that the replica is silent. */
  silentAt: number;
  /** Set while a probe takes long: a report of silence then decides the probe's result. */
  onSilent: (() => void) | undefined;
}

/** Follows a started replica: processes, log, readiness. `isSilent`: its machine is silent or not seen yet. */
export function watchReplica(context: ServiceContext, handle: ReplicaHandle, isSilent: () => boolean, signal: AbortSignal): ReplicaWatch {
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  let nap: AbortController | undefined;
  const never = Number.NEGATIVE_INFINITY;
  const isAwake = handle.state !== 'NOT_READY';
  const times: ProbeTimes = {
    isAwake,
    askedAt: undefined,
    lastPassed: true,
    lastTookMs: 0,
    endedAt: never,
    silentAt: never,
    onSilent: undefined,
  };
  const outcome = async (): Promise<ReplicaEnd | undefined> => {
    const { address, offer, machineId, version } = handle.record;
    if (address === null || offer === null || machineId === null) {
      return { cause: 'provision', reason: 'Its record has no machine or address.', killed: false };
    }
    const { service, numNodes } = await context.task(version);
    if (service === undefined) return undefined;
    const provider = await context.provider(offer.provider);
    assertMachineId(machineId);
    const machine = { provider, offer, machineId, numNodes };
    // A provider or a machine that does not answer says nothing about the replica. Its probes decide.
    const gone = await tolerantly(() => machineFate(machine, both), context, handle, both);
    if (gone !== undefined) return gone;
    const remote = provider.remote(machineId);
    const route = replicaRoute(handle, address, remote, service.replicaPort);
    let measuring: Promise<void> | undefined;
    // Called after each probe, because an update may add the path to a running replica. Without a path it ends at once.
    const measure = async (): Promise<void> => {
      while (!both.aborted && (await measureOnce(context, handle, route, both))) await context.clock.sleep(engineReadIntervalMs, both);
      measuring = undefined;
    };
    const probing = async (): Promise<ReplicaEnd | undefined> => {
      while (!both.aborted) {
        const found = await probeOnce(context, handle, { route, remote, isSilent, times }, both);
        if (found !== undefined) return found;
        measuring ??= measure().catch((error: unknown) => {
          measuring = undefined;
          context.log.warn({ err: error, replica: handle.id }, 'cannot read the metrics of its engine');
        });
        const sinceStart = context.clock.now() - (handle.record.startedAt ?? context.clock.now());
        const { controller, unlink } = linkedController(both);
        nap = controller;
        await context.clock.sleep(nextProbeMs(handle.state, sinceStart, service.readinessProbe), nap.signal);
        unlink();
      }
      return undefined;
    };
    const program = followProgram(context, handle, machine, () => nap?.abort(ended), both);
    try {
      // The first end aborts the other loop, which then returns nothing.
      const found = await Promise.all([program.finally(() => over.abort()), probing().finally(() => over.abort())]);
      return found.find((one) => one !== undefined);
    } finally {
      over.abort();
      await measuring;
    }
  };
  return {
    probeNow: () => nap?.abort(ended),
    suspect(reason) {
      const now = context.clock.monotonic();
      if (reason === 'silent') {
        times.silentAt = now;
        times.onSilent?.();
      }
      if (needsProbe(reason, now - times.endedAt)) nap?.abort(ended);
    },
    get answers() {
      const { askedAt, lastPassed, lastTookMs } = times;
      return stillAnswers({ waitingMs: askedAt === undefined ? undefined : context.clock.monotonic() - askedAt, lastPassed, lastTookMs });
    },
    outcome: outcome(),
  };
}

/**
 * Reads the metrics of a ready replica's engine. A failed reading changes nothing. Returns whether the policy has their
 * path.
 */
async function measureOnce(context: ServiceContext, handle: ReplicaHandle, route: ReplicaRoute, signal: AbortSignal): Promise<boolean> {
  const { service } = await context.task(handle.record.version);
  const path = service?.replicaPolicy.metricsPath;
  if (path === undefined) return false;
  if (handle.state !== 'READY') return true;
  const metrics = await context.measure(route.address, path, signal);
  if (metrics !== undefined) context.reports.report(handle.id, { engine: { ...metrics, at: context.clock.monotonic() } });
  return true;
}

/** How long a state change waits for the balancer to confirm the set, ms. A restarting balancer gets it later. */
const appliedTimeoutMs = 500;

/** Makes one probe and applies its consequences. Returns the end if one was decided. */
async function probeOnce(
  context: ServiceContext,
  handle: ReplicaHandle,
  {
    route,
    remote,
    isSilent,
    times,
  }: {
    readonly route: ReplicaRoute;
    readonly remote: Pick<Remote, 'connections'>;
    readonly isSilent: () => boolean;
    readonly times: ProbeTimes;
  },
  signal: AbortSignal,
): Promise<ReplicaEnd | undefined> {
  // During setup there is nothing to probe, and the initial delay does not count. An engine that sleeps may not answer.
  if (handle.record.startedAt === null || handle.state === 'SLEEPING') return undefined;
  const { service } = await context.task(handle.record.version);
  if (service === undefined) return undefined;
  const failed = times.isAwake ? undefined : await wakeEngine(context, route.address, service, signal);
  times.isAwake = failed === undefined;
  const hung = new AbortController();
  const redact = redactor(await context.task(handle.record.version));
  const askedAt = context.clock.monotonic();
  times.askedAt = askedAt;
  const onSlow = (): void => {
    const now = context.clock.monotonic();
    const isReportedSilent = now - times.silentAt < silenceReportMs;
    const waitedMs = now - askedAt;
    const found = judgeSlowProbe({
      state: handle.state,
      waitedMs,
      isSilent: isReportedSilent,
      ...context.endpoint.capacityWith(handle.id),
    });
    if (found === 'hung') hung.abort();
    else if (found === 'step-aside') context.reports.report(handle.id, { probe: 'slow' });
  };
  const slow = [slowProbeMs, hungProbeMs].map((ms) =>
    context.clock.after(ms, () => {
      times.onSilent = onSlow;
      onSlow();
    }),
  );
  const probed = failed ?? (await context.probe(route.address, service, AbortSignal.any([signal, hung.signal])));
  times.askedAt = undefined;
  times.endedAt = context.clock.monotonic();
  times.onSilent = undefined;
  const result = hung.signal.aborted && !probed.passed ? unansweredProbe(service) : probed;
  // The record follows later, after another route was tried.
  if (!signal.aborted) times.lastPassed = result.passed;
  if (result.passed) times.lastTookMs = context.clock.monotonic() - askedAt;
  // The path may contain a secret.
  const explained = await explainClosedPort(context, handle, { remote, result, port: route.address.port }, signal);
  const answer = { ...result, detail: redact(explained ?? result.detail) };
  for (const cancel of slow) cancel();
  if (signal.aborted) return undefined;
  const [now, waitedMs] = [context.clock.now(), context.clock.monotonic() - askedAt];
  const verdict = judgeProbe({ ...handle.record, isSilent: isSilent() }, answer.passed, service.readinessProbe, now, now - waitedMs);
  const change = { firstProbeFailureAt: verdict.firstProbeFailureAt };
  if (verdict.event?.type === 'stop-requested') {
    const span =
      verdict.event.cause === 'initial-delay' ? service.readinessProbe.initialDelaySeconds : service.readinessProbe.failureThresholdSeconds;
    return { cause: verdict.event.cause, reason: `It was not ready for ${span} s: ${answer.detail}.`, killed: false };
  }
  // The balancer first: a READY status must not precede the endpoint, and a NOT_READY status must not lag behind it.
  if (answer.passed) {
    // Settled before READY: the balancer then never gets an address that is about to be replaced.
    if (handle.state === 'STARTING') await route.settle(context.clock, signal);
    context.reports.report(handle.id, { probe: 'passed', isGone: false });
    await context.endpoint.settled(appliedTimeoutMs);
  } else {
    context.reports.report(handle.id, { probe: answer.isUnanswered === true ? 'unanswered' : 'failed' });
    await route.repair(context.clock, signal);
  }
  if (verdict.event !== undefined)
    await handle.transition(verdict.event, { cause: verdict.event.type, message: `${answer.detail}.` }, change);
  if (answer.passed) await clearComplaint(handle);
  else await complain(handle, answer.detail, verdict.firstProbeFailureAt ?? context.clock.now(), context.clock.now());
  if (handle.record.firstProbeFailureAt !== verdict.firstProbeFailureAt) await handle.patch(change);
  return undefined;
}

function unansweredProbe({ readinessProbe: { path } }: ServiceSpec): ProbeAnswer {
  return {
    passed: false,
    detail: `${path} did not answer within ${slowProbeMs / 1_000} s, nor do requests get answers`,
    isUnanswered: true,
  };
}

/** A new program usually does not listen yet. Its failed probes are reported only after this time, ms. */
const patienceMs = 5_000;

/** A machine that does not say it within this time, ms, delays no probe further. */
const listenerTimeoutMs = 2_000;

/** Where the program listens, if it has had time to start and its port is closed. A ready replica must not wait for it. */
async function explainClosedPort(
  { clock }: ServiceContext,
  handle: ReplicaHandle,
  { remote, result, port }: { readonly remote: Pick<Remote, 'connections'>; readonly result: ProbeAnswer; readonly port: number },
  signal: AbortSignal,
): Promise<string | undefined> {
  const isNew = clock.now() - (handle.record.firstProbeFailureAt ?? clock.now()) < patienceMs;
  if (result.isClosed !== true || handle.state !== 'STARTING' || isNew) return undefined;
  const ask = async (inner: AbortSignal): Promise<string> => (await remote.connections?.({ signal: inner })) ?? '';
  const table = await withDeadline(clock, listenerTimeoutMs, ask, noAnswer, signal).catch(() => '');
  return whyClosed(table, port);
}

/** Reports why a replica is not ready, once for each new reason. */
async function complain(handle: ReplicaHandle, detail: string, since: number, now: number): Promise<void> {
  const reason = `Not ready: ${detail}.`;
  if (handle.record.reason === reason || (handle.state === 'STARTING' && now - since < patienceMs)) return;
  await handle.patch({ reason }, { cause: 'probe-answer', message: reason });
}

async function clearComplaint(handle: ReplicaHandle): Promise<void> {
  if (handle.record.reason !== null && handle.state === 'READY') await handle.patch({ reason: null });
}

/** The address that requests and probes use. `src/remote/tunnels.ts` keeps the tunnels behind it. */
interface ReplicaRoute {
  readonly address: ReplicaAddress;
  /** Switches to the best address or keeps the current one. Works only once the program listens on its port. */
  settle(clock: Clock, signal: AbortSignal): Promise<void>;
  /** Switches to a working address where a provider offers several tunnels. Without one, keeps the current address. */
  repair(clock: Clock, signal: AbortSignal): Promise<void>;
}

/** Resolving a better address must not delay the next probe or the state READY for longer, ms. */
const lookupTimeoutMs = 5_000;
const noAnswer = (): Error => new Error('no address in time');

/** Starts with the recorded address. Records a better one. */
export function replicaRoute(
  handle: Pick<ReplicaHandle, 'patch'>,
  recorded: ReplicaAddress,
  remote: Pick<Remote, 'address'>,
  port: number,
): ReplicaRoute {
  let address = recorded;
  const switchTo = async (best: ReplicaAddress, why: string): Promise<void> => {
    if (describeAddress(best) === describeAddress(address)) return;
    address = best;
    await handle.patch({ address }, { cause: 'address', message: `${why}: ${describeAddress(best)}.` });
  };
  const findAddress = (clock: Clock, signal: AbortSignal): Promise<ReplicaAddress> =>
    withDeadline(clock, lookupTimeoutMs, (inner) => remote.address(port, { signal: inner }), noAnswer, signal).catch(() => address);
  return {
    get address() {
      return address;
    },
    async settle(clock, signal) {
      if (address.kind !== 'forward') return;
      const best = await findAddress(clock, signal);
      if (best.kind === 'tcp' && !signal.aborted) await switchTo(best, 'Its port is open, so requests go there directly');
    },
    async repair(clock, signal) {
      if (address.by === undefined) return;
      const best = await findAddress(clock, signal);
      if (!signal.aborted) await switchTo(best, 'Requests go there another way now');
    },
  };
}
