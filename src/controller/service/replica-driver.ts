import { isAlive, isEnded, isFailed, type EndCause } from '../../domain/replica-state.ts';
import { rememberFailure, type Failure } from '../../domain/crash-loop.ts';
import { SvcError } from '../../shared/errors.ts';
import { wakeable, type Wakeable } from '../../shared/wakeable.ts';
import type { BalancerView } from './balancer-client.ts';
import { endReplica } from './replica-end.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { launchFailure, launchReplica } from './replica-launch.ts';
import { watchReplica, type ReplicaWatch } from './replica-watch.ts';
import { redactor } from './redact.ts';
import { rotationMember } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';

/** Pause after an unexpected error of our own, ms, so that a bug does not spin. */
const bugPauseMs = 1_000;

/** Passing failures of a launch are tried again with the same machine so often. */
const launchAttempts = 3;

/** Ends that say nothing about the program. */
const wantedEnds: readonly EndCause[] = ['scale-down', 'user', 'service-down', 'preempted', 'interruption'];

/** What the guard against crash loops is told of a failure besides its times. */
type FailureKind = Partial<Pick<Failure, 'killed' | 'neverStarted'>>;

/** Drives one replica through its life: whatever its recorded state, it does what comes next. */
export class ReplicaDriver {
  readonly handle: ReplicaHandle;
  readonly #context: ServiceContext;
  readonly #balancer: () => BalancerView;
  #phase = new AbortController();
  #watch: ReplicaWatch | undefined;
  #isEnding = false;
  #isFailureCounted = false;
  #removal: Wakeable | undefined;

  constructor(context: ServiceContext, handle: ReplicaHandle, balancer: () => BalancerView) {
    this.#context = context;
    this.handle = handle;
    this.#balancer = balancer;
  }

  /** Settles when the replica has ended or the signal aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !isEnded(this.handle.state)) {
      this.#phase = new AbortController();
      const both = AbortSignal.any([signal, this.#phase.signal]);
      try {
        await this.#step(both);
      } catch (error) {
        if (both.aborted) continue;
        this.#context.log.error({ err: error, replica: this.handle.id, state: this.handle.state }, 'driving a replica failed');
        await this.#context.clock.sleep(bugPauseMs, both);
      }
    }
    this.#context.wake();
  }

  /** Asks the replica again at once whether it is ready. */
  probeNow(): void {
    this.#watch?.probeNow();
  }

  /** Tries at once again to remove its machine, when that failed and waits for the next attempt. */
  hurry(): void {
    this.#removal?.wake();
  }

  /** Sends the replica on its way out; does nothing when it is already going. */
  async stop(cause: EndCause, reason: string, how: FailureKind = {}): Promise<void> {
    // Before its end is written: whoever sees that a replica is missing knows of its failure, and begins none in vain.
    await this.#countFailure(cause, how);
    const stopped = await this.handle.happen({ type: 'stop-requested', cause }, { cause, message: reason }, { endCause: cause, reason });
    // Also when it was on its way out already: whatever else is still being done with it must end. Not when that could not be written: it is tried again.
    if (!this.#isEnding) this.#phase.abort();
    if (!stopped) return;
    this.hurry();
    this.#context.wake();
  }

  async #countFailure(cause: EndCause, { killed = false, neverStarted = false }: FailureKind): Promise<void> {
    const { record, state } = this.handle;
    if (this.#isFailureCounted || wantedEnds.includes(cause) || !isAlive(state)) return;
    this.#isFailureCounted = true;
    const now = this.#context.clock.now();
    const failure = {
      at: now,
      everReady: record.firstReadyAt !== null,
      readyMs: record.readySince === null ? 0 : now - record.readySince,
      killed,
      ...(neverStarted && { neverStarted }),
    };
    try {
      await this.#context.changeService((service) => ({
        memory: { ...service.memory, failures: rememberFailure(service.memory.failures, failure) },
      }));
    } catch (error) {
      this.#isFailureCounted = false;
      throw error;
    }
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { state } = this.handle;
    this.#isEnding = state === 'SHUTTING_DOWN' || state === 'FAILED_CLEANUP';
    if (state === 'PENDING' || state === 'PROVISIONING') await this.#launch(signal);
    else if (state === 'STARTING' || state === 'READY' || state === 'NOT_READY') await this.#follow(signal);
    else if (this.#isEnding) await this.#end(signal);
    // What is left, such as UNKNOWN, waits for a person: only `stop` moves it on.
    else if (isFailed(state)) await this.#context.clock.sleep(bugPauseMs, signal);
  }

  async #end(signal: AbortSignal): Promise<void> {
    this.#removal = wakeable(this.#context.clock, signal);
    await endReplica(this.#context, this.handle, this.#balancer, signal, this.#removal);
  }

  async #launch(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        return await launchReplica(this.#context, this.handle, signal);
      } catch (error) {
        if (signal.aborted) return undefined;
        this.#context.log.warn(
          { code: error instanceof SvcError ? error.code : 'unexpected', replica: this.handle.id, attempt },
          'a launch failed',
        );
        // A locked database or a place that does not answer says nothing about the program.
        const isPassing = !(error instanceof SvcError) || error.kind === 'transient' || error.kind === 'internal';
        if (isPassing && attempt < launchAttempts) await this.#context.clock.sleep(bugPauseMs * attempt, signal);
        else {
          const redact = redactor(await this.#context.task(this.handle.record.version));
          const neverStarted = error instanceof SvcError && error.code === 'SVC_BOOT_FAILED';
          return this.stop('provision', redact(launchFailure(this.handle.record, error)), { neverStarted });
        }
      }
    }
    return undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { address, machineId, place } = this.handle.record;
    if (address === null || machineId === null || place === null) {
      const message = 'Its record names no machine or address. End it with: svc serve terminate-replica';
      await this.handle.happen({ type: 'record-inconsistent' }, { cause: 'record-inconsistent', message }, { reason: message });
      return;
    }
    const { service } = await this.#context.task(this.handle.record.version);
    if (this.handle.state === 'READY' && service !== undefined)
      this.#context.rotation.serve(rotationMember(this.handle.record, address, service));
    this.#watch = watchReplica(this.#context, this.handle, signal);
    const outcome = await this.#watch.outcome;
    this.#watch = undefined;
    if (outcome === undefined || signal.aborted) return;
    // Out of rotation before anything else, even before the record: requests must not wait for the disk.
    if (outcome.cause === 'program-failed' || outcome.cause === 'machine-lost') this.#context.rotation.remove(this.handle.id);
    await this.stop(outcome.cause, outcome.reason, { killed: outcome.killed });
  }
}
