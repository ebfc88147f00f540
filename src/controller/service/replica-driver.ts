import type { SuspectReason } from '../../domain/balancer-link.ts';
import { canDrain } from '../../domain/endpoint-set.ts';
import { isSilentOrUnseen, type ReplicaEnd } from '../../domain/replica/replica-report.ts';
import { isAlive, isEnded, isFailed } from '../../domain/replica/replica-state.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import { SvcError } from '../../shared/errors.ts';
import { unlessAborted } from '../../shared/deadline.ts';
import { wakeable, type Wakeable } from '../../shared/loop.ts';
import type { BalancerView } from './balancer-client.ts';
import { redactor } from './replica-program.ts';
import { endReplica } from './replica-end.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { launchFailure, launchReplica } from './replica-launch.ts';
import { putToSleep } from './replica-sleep.ts';
import { watchReplica, type ReplicaWatch } from './replica-watch.ts';
import type { ServiceContext } from './service-context.ts';

/** Pause after an unexpected error of this program, ms: a bug must not cause a busy loop. */
const bugPauseMs = 1_000;

/** How often a transient launch failure is retried with the same machine. */
const launchAttempts = 3;

const launchBackoff: Backoff = { firstMs: 1_000, longestMs: 10_000 };

/** Executes what a replica's state requires, and reports the results. `reconcile` makes all decisions. */
export class ReplicaDriver {
  readonly handle: ReplicaHandle;
  readonly #context: ServiceContext;
  readonly #balancer: () => BalancerView;
  #phase = new AbortController();
  #watch: ReplicaWatch | undefined;
  #isEnding = false;
  #isSleeping = false;
  #wasSilent = false;
  /** Settles when the reported end could not be written. */
  #refusal: PromiseWithResolvers<void> | undefined;
  #removal: Wakeable | undefined;

  constructor(context: ServiceContext, handle: ReplicaHandle, balancer: () => BalancerView) {
    this.#context = context;
    this.handle = handle;
    this.#balancer = balancer;
  }

  get answers(): boolean {
    return this.handle.state === 'READY' && (this.#watch?.answers ?? true);
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

  probeNow(): void {
    this.#watch?.probeNow();
  }

  suspect(reason: SuspectReason): void {
    this.#watch?.suspect(reason);
  }

  /** Retries the machine's removal at once when it waits for its next attempt. */
  retryNow(): void {
    this.#removal?.wake();
  }

  /** Stops all other work on the replica once its record says that it ends, sleeps or wakes up. */
  obeyRecord(): void {
    const { state } = this.handle;
    if (this.#isSleeping === (state === 'SLEEPING') && (this.#isEnding || isAlive(state) || state === 'UNKNOWN')) return;
    this.#wasSilent ||= this.#isSilent;
    this.#phase.abort();
  }

  /** The reported end could not be written. The replica may have recovered, so it is followed again. */
  refuseEnd(): void {
    this.#refusal?.resolve();
  }

  get #isSilent(): boolean {
    return this.#context.reports.of(this.handle.id).machine.type === 'silent';
  }

  /** Reports an end. Rejects when the record says so. Settles after a pause when the end could not be written. */
  async #reportEnd(end: ReplicaEnd, signal: AbortSignal): Promise<void> {
    // The replica leaves the endpoint set before the record says so: requests must not wait for the disk.
    this.#context.reports.report(this.handle.id, { end, ...(!canDrain(end.cause) && { isGone: true }) });
    this.#refusal = Promise.withResolvers();
    this.#context.wake();
    await unlessAborted(this.#refusal.promise, signal);
    await this.#context.clock.sleep(bugPauseMs, signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { state } = this.handle;
    this.#isEnding = state === 'SHUTTING_DOWN' || state === 'FAILED_CLEANUP';
    this.#isSleeping = state === 'SLEEPING';
    if (state === 'PENDING' || state === 'PROVISIONING') await this.#launch(signal);
    else if (state === 'STARTING' || state === 'READY' || state === 'NOT_READY' || this.#isSleeping) await this.#follow(signal);
    else if (this.#isEnding) await this.#end(signal);
    // The remaining states, such as UNKNOWN, need manual action.
    else if (isFailed(state)) await this.#context.clock.sleep(bugPauseMs, signal);
  }

  async #end(signal: AbortSignal): Promise<void> {
    this.#wasSilent ||= this.#isSilent;
    this.#removal = wakeable(this.#context.clock, signal);
    await endReplica(this.#context, this.handle, this.#balancer, signal, this.#removal, this.#wasSilent);
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
        // A locked database or a provider that does not answer says nothing about the program.
        const isPassing = !(error instanceof SvcError) || error.kind === 'transient' || error.kind === 'internal';
        // While its machine is silent, its replacement is being launched, and the machine may come back.
        if (isPassing && (attempt < launchAttempts || this.#isSilent))
          await this.#context.clock.sleep(delayMs(launchBackoff, attempt), signal);
        else {
          const redact = redactor(await this.#context.task(this.handle.record.version));
          const neverStarted = error instanceof SvcError && error.code === 'SVC_BOOT_FAILED';
          const reason = redact(launchFailure(this.handle.record, error));
          return this.#reportEnd({ cause: 'provision', reason, neverStarted }, signal);
        }
      }
    }
    return undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { address, machineId, offer } = this.handle.record;
    if (address === null || machineId === null || offer === null) {
      const message = 'Its record names no machine or address. End it with: svc serve terminate-replica';
      await this.handle.transition({ type: 'record-inconsistent' }, { cause: 'record-inconsistent', message }, { reason: message });
      return;
    }
    this.#watch = watchReplica(this.#context, this.handle, () => isSilentOrUnseen(this.#context.reports.of(this.handle.id)), signal);
    const sleeping = this.#isSleeping ? [putToSleep(this.#context, this.handle, this.#balancer, signal)] : [];
    const outcome = await Promise.race([this.#watch.outcome, ...sleeping]);
    this.#watch = undefined;
    if (outcome !== undefined && !signal.aborted) await this.#reportEnd(outcome, signal);
  }
}
