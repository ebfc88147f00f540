import { createClient, type ApiClient } from '../api/client.ts';
import {
  ensureInCluster,
  healInCluster,
  leaderRemote,
  recorded,
  startInCluster,
  wayToLeader,
  type HighAvailabilityDeps,
} from '../launcher/high-availability/high-availability.ts';
import { findLeader, type Leader } from '../launcher/high-availability/leader.ts';
import { TroubleWatch } from '../launcher/high-availability/rollout.ts';
import type { ClusterSite } from '../launcher/high-availability/site.ts';
import { clusterStatus, type ClusterStatus } from '../launcher/high-availability/status.ts';
import type { Remote } from '../remote/remote.ts';
import { withDeadline } from '../shared/deadline.ts';
import { SvcError } from '../shared/errors.ts';
import type { OnStep } from './connection.ts';
import { probe } from './here-connection.ts';

/** How long it may take until one leads and answers, ms, when it is being brought up: images have to be fetched, and volumes made. */
const bringUpTimeoutMs = 600_000;
/** And when it was there before: a node may just have been lost. */
const answerTimeoutMs = 120_000;
/** One that leads answers within so long, ms; else another one may lead by then. */
const attemptMs = 8_000;
const pollMs = 500;

/** The ways to the API of a controller in a cluster: that of the one that leads, which may be another one than before. */
export class ClusterClient {
  readonly #depsWith: (onStep: OnStep) => HighAvailabilityDeps;
  readonly #silent: HighAvailabilityDeps;

  constructor(depsWith: (onStep: OnStep) => HighAvailabilityDeps) {
    this.#depsWith = depsWith;
    this.#silent = depsWith(() => undefined);
  }

  /** Of the one there is, or is to be: it is brought up, or started, when none leads. */
  async get(onStep: OnStep): Promise<ApiClient> {
    const { site, record: known } = recorded(this.#silent);
    const api = known.machineId === null ? undefined : await this.leading(site);
    if (api !== undefined) return api;
    await ensureInCluster(this.#depsWith(onStep));
    const { state } = await this.status(site);
    if (state === 'stopped') await startInCluster(this.#depsWith(onStep));
    return this.#untilUp(site, onStep);
  }

  /** Brings one up. */
  async bringUp(onStep: OnStep): Promise<ApiClient> {
    return this.#untilUp(await ensureInCluster(this.#depsWith(onStep)), onStep);
  }

  /** Of one that is not stopped. */
  async running(): Promise<ApiClient | undefined> {
    const { site } = recorded(this.#silent);
    const known = await this.leading(site);
    if (known !== undefined) return known;
    const { state } = await this.status(site);
    // Between two leaders there is none for a few seconds.
    return state === 'running' ? this.#untilLeading(site, () => undefined, answerTimeoutMs) : undefined;
  }

  /** Of one that may have something to look after. */
  async existing(): Promise<ApiClient | undefined> {
    const { site, record: known } = recorded(this.#silent);
    if (known.machineId === null || (await this.status(site)).state === 'absent') return undefined;
    // One that was stopped may have services: whoever asks about them is to see them.
    return this.get(() => undefined);
  }

  /** Of the one that leads now, if it answers: after a node was lost another one than before. */
  async leading(site: ClusterSite): Promise<ApiClient | undefined> {
    const leader = await this.#leader(site);
    return leader === undefined ? undefined : this.#ask(site, leader);
  }

  /** How to work on the machine of the one that leads. */
  async leadersRemote(site: ClusterSite): Promise<Remote> {
    const leader = await this.#leader(site);
    if (leader === undefined) throw unreachable(site, 'has no leader at the moment');
    return leaderRemote(site, leader, this.#silent);
  }

  status(site: ClusterSite): Promise<ClusterStatus> {
    return clusterStatus(site, this.#silent.openApi(site), this.#silent.signal);
  }

  #leader(site: ClusterSite): Promise<Leader | undefined> {
    return findLeader(this.#silent.openApi(site), site, this.#silent.signal);
  }

  async #ask(site: ClusterSite, leader: Leader): Promise<ApiClient | undefined> {
    const { clock, signal } = this.#silent;
    const attempt = async (inner: AbortSignal): Promise<ApiClient | undefined> => {
      const socketPath = await wayToLeader(leaderRemote(site, leader, this.#silent), inner);
      const api = createClient({ socketPath, clock, signal });
      return (await probe(api)) === undefined ? undefined : api;
    };
    try {
      return await withDeadline(clock, attemptMs, attempt, () => new Error('late'), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SvcError && error.code === 'SVC_VERSION_MISMATCH') throw error;
      return undefined;
    }
  }

  #untilUp(site: ClusterSite, onStep: OnStep): Promise<ApiClient> {
    return this.#untilLeading(site, onStep, bringUpTimeoutMs, () => healInCluster(this.#depsWith(onStep)));
  }

  /** `heal`: sees to it before each look that there is something to wait for. */
  async #untilLeading(site: ClusterSite, onStep: OnStep, timeoutMs: number, heal?: () => Promise<void>): Promise<ApiClient> {
    const { clock, signal, openApi } = this.#silent;
    const watch = new TroubleWatch(site, { ...this.#depsWith(onStep), api: openApi(site) });
    const deadline = clock.monotonic() + timeoutMs;
    for (;;) {
      const api = await this.leading(site);
      if (api !== undefined) return api;
      await heal?.();
      onStep(await watch.look());
      if (clock.monotonic() > deadline) throw unreachable(site, `does not answer within ${timeoutMs / 60_000} minutes`);
      await clock.sleep(pollMs, signal);
      signal.throwIfAborted();
    }
  }
}

function unreachable({ context, namespace }: ClusterSite, what: string): SvcError {
  return new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller in ${context}/${namespace} ${what}.`, {
    hint: `Run the command again. To see its pods: svc controller status`,
  });
}
