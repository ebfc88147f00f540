import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { Worker } from 'node:worker_threads';
import { holderName, hostOfHolder } from '../../domain/leadership.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { SvcError, toErrorReply } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import { type HomePaths, servicePaths } from '../../shared/paths.ts';
import type { LeaseSource } from './lease-source.ts';
import { threadEntry } from '../../shared/program-files.ts';
import { randomHex } from '../../shared/hex.ts';
import type { KeeperNews, KeeperOrder, KeeperSetup } from './keeper.ts';
import { foldersIn } from '../folders-in.ts';
import { endAt } from '../supervise/supervisor.ts';

/** Additional dependencies of a daemon with rivals. */
export interface LeaderLeaseOptions {
  readonly source: LeaseSource;
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly log: Logger;
  /** This daemon lost the lead: everything must end at once. */
  readonly onLost: () => void;
}

/** The leadership among several daemons: a daemon waits for the lease, and releases it in the end. */
export class LeaderLease {
  readonly #options: LeaderLeaseOptions;
  readonly #election: LeaderElection;
  readonly #failed = Promise.withResolvers<never>();
  #term: number | undefined;
  #other: string | undefined;

  constructor(options: LeaderLeaseOptions) {
    this.#options = options;
    this.#failed.promise.catch(() => undefined);
    this.#election = new LeaderElection(options.source, options.paths.fence, options.clock, {
      otherLeads: (holder) => this.#standBy(holder),
      lost: (why) => this.#lose(why),
    });
  }

  /** The term of this daemon, once it leads; undefined when the signal aborts before. */
  async acquired(signal: AbortSignal): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const giveUp = (): void => resolve(undefined);
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
    this.#term = await Promise.race([this.#election.elected, this.#failed.promise, promise]);
    signal.removeEventListener('abort', giveUp);
    if (this.#term === undefined) return undefined;
    this.#options.log.info({ term: this.#term }, 'this controller leads');
    rmSync(this.#options.paths.startError, { force: true });
    return this.#term;
  }

  /** From the call on this daemon must not act. Settles when another one can lead. */
  release(): Promise<void> {
    return this.#election.release();
  }

  /** Records the leader for the client that started this controller and waits for its answer. */
  #standBy(holder: string): void {
    if (this.#other === holder || this.#term !== undefined) return;
    this.#other = holder;
    const { log, paths, clock } = this.#options;
    log.info({ holder }, 'another controller leads; this one stands by');
    const message = `The controller here stands by: the one on ${hostOfHolder(holder)} leads.`;
    const error = new SvcError('SVC_NOT_LEADER', message, { hint: `Give the command on ${hostOfHolder(holder)}.` });
    writeFileAtomic(paths.startError, JSON.stringify(toErrorReply(error)));
    void endLeftovers(paths, clock).catch((failure: unknown) => log.warn({ err: failure }, 'what ran here before could not be ended'));
  }

  #lose(why: string): void {
    this.#options.log.error({ why }, 'the lease is lost');
    if (this.#term === undefined) this.#failed.reject(new SvcError('SVC_NOT_LEADER', `The lease cannot be asked for: ${why}`));
    else this.#options.onLost();
  }
}

const beatMs = 1_000;
/** Timeout for releasing the lease, ms: without a release the other controllers wait until it expires. */
const releaseMs = 2_500;

interface LeaderElectionListeners {
  /** Another controller leads and is alive. */
  otherLeads(holder: string): void;
  /** This controller led and must not act any more: it has to end. Also called when the lease keeper thread died. */
  lost(why: string): void;
}

/** Requests the lease for this daemon in a thread of its own until it has it, and renews it. */
export class LeaderElection {
  readonly elected: Promise<number>;
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #cancelBeat: CancelTimer;
  readonly #released = Promise.withResolvers<void>();
  #isReleasing = false;

  constructor(source: LeaseSource, fencePath: string, clock: Clock, listeners: LeaderElectionListeners) {
    const setup: KeeperSetup = { source, self: holderName(hostname(), randomHex(8)), fencePath };
    const { promise, resolve } = Promise.withResolvers<number>();
    this.elected = promise;
    this.#clock = clock;
    this.#worker = new Worker(threadEntry('controller/leadership/keeper'), { workerData: setup });
    this.#worker.on('message', (news: KeeperNews) => {
      if (news.type === 'elected') resolve(news.term);
      else if (news.type === 'other-leads') listeners.otherLeads(news.holder);
      else if (news.type === 'released') this.#released.resolve();
      else if (!this.#isReleasing) listeners.lost(news.why);
    });
    let failure = 'the thread that keeps it ended';
    this.#worker.on('error', (error: unknown) => (failure = error instanceof Error ? error.message : String(error)));
    this.#worker.on('exit', () => {
      this.#released.resolve();
      if (!this.#isReleasing) listeners.lost(failure);
    });
    this.#cancelBeat = clock.every(beatMs, () => this.#order({ type: 'beat' }));
  }

  /** Releases the lease, so that another controller leads at once. From the call on this machine must not act. */
  async release(): Promise<void> {
    this.#isReleasing = true;
    this.#cancelBeat();
    this.#order({ type: 'release' });
    const waiting = new AbortController();
    await Promise.race([this.#released.promise, this.#clock.sleep(releaseMs, waiting.signal)]);
    // A pending sleep would keep the process alive.
    waiting.abort();
    await this.#worker.terminate();
  }

  #order(order: KeeperOrder): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node, not a window
    this.#worker.postMessage(order);
  }
}

const greetMs = 2_000;
/** A balancer lets requests in progress finish for up to half a minute. */
const balancerGraceMs = 35_000;

/**
 * Ends processes that an earlier leader of this home left running, once another controller leads. That controller has
 * its own endpoints; the local ones would keep serving replicas that no longer exist.
 */
async function endLeftovers(paths: HomePaths, clock: Clock): Promise<void> {
  const ended = foldersIn(paths.servicesDir).map(async (key) => {
    const { reconcilerSocket, reconcilerIdentity, balancerSocket } = servicePaths(paths, key);
    await Promise.all([
      endAt(reconcilerSocket, { clock, greetMs, graceMs: 0, identityFile: reconcilerIdentity }),
      endAt(balancerSocket, { clock, greetMs, graceMs: balancerGraceMs }),
    ]);
  });
  await Promise.all(ended);
}
