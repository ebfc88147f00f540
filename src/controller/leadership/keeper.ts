import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../shared/clock.ts';
import type { LeaseLock } from '../../domain/leadership.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { createLogger } from '../../shared/log.ts';
import { systemRandom } from '../../shared/random.ts';
import { formerHolder, revokeFence, writeFence } from './fence-file.ts';
import { keepLease, leaseAfter } from './keep-lease.ts';
import { openLease, type LeaseSource } from './lease-source.ts';

/**
 * The thread that keeps the lease. A daemon that is busy for seconds keeps its lease; a stopped one loses it, because
 * its threads stop with it. The thread kills a daemon whose event loop is blocked for too long, so that another
 * controller can lead.
 */

/** The daemon sends a heartbeat each second. After this much silence it is stuck, ms. */
const stuckMs = 20_000;
const stuckPollMs = 1_000;
const openAgainMs = 500;
/** How long the daemon may take to end by itself after the loss, ms. The fence stops its calls meanwhile. */
const endMs = 2_000;

/** Start parameters of the lease keeper thread. */
export interface KeeperSetup {
  readonly source: LeaseSource;
  readonly self: string;
  readonly fencePath: string;
}

/** Messages from the daemon: a heartbeat, and the order to release the lease. */
export type KeeperOrder = { readonly type: 'beat' } | { readonly type: 'release' };

/** Messages to the daemon. */
export type KeeperNews =
  | { readonly type: 'elected'; readonly term: number }
  | { readonly type: 'other-leads'; readonly holder: string }
  | { readonly type: 'lost'; readonly why: string }
  | { readonly type: 'released' };

const port = parentPort;
if (port === null) throw new Error('keeper.ts is started by the controller as a worker thread');

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread of the same program made it
const setup = workerData as KeeperSetup;
const log = createLogger('lease').child({ self: setup.self });
const clock = systemClock;
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node, not a window
const notify = (news: KeeperNews): void => port.postMessage(news);

const stop = new AbortController();
let term: number | undefined;
let beats = 0;
port.on('message', (order: KeeperOrder) => {
  if (order.type === 'beat') beats += 1;
  else endTerm();
});

/** Waits for a database that does not answer: a candidate has nothing else to do. */
async function openWhenAvailable(): Promise<LeaseLock> {
  for (;;) {
    try {
      return await openLease(setup.source, clock, systemRandom);
    } catch (error) {
      if (!(error instanceof SvcError) || error.kind !== 'transient' || stop.signal.aborted) throw error;
      log.warn({ err: error }, 'the lease cannot be asked for yet');
      await clock.sleep(openAgainMs, stop.signal);
    }
  }
}

/** Order matters: first this machine's right to act ends, then another controller may act. */
function endTerm(): void {
  revokeFence(setup.fencePath);
  stop.abort();
}

const endDaemon = (): void => void process.kill(process.pid, 'SIGKILL');

let beatsSeen = 0;
let silentMs = 0;
let checkedAt = clock.monotonic();
clock.every(stuckPollMs, () => {
  const now = clock.monotonic();
  // Time in which this thread itself was stopped, as in a suspended machine, is not silence.
  silentMs = beats === beatsSeen ? silentMs + Math.min(now - checkedAt, stuckPollMs) : 0;
  beatsSeen = beats;
  checkedAt = now;
  if (silentMs < stuckMs || stop.signal.aborted) return;
  log.error('the controller has stood still for too long and is ended');
  endTerm();
  clock.after(endMs, endDaemon);
});

let failure = '';
const lock = leaseAfter(await openWhenAvailable(), formerHolder(setup.fencePath));
const why = await keepLease(
  {
    lock,
    self: setup.self,
    clock,
    held(heldTerm, untilMs) {
      if (stop.signal.aborted) return;
      writeFence(setup.fencePath, heldTerm, setup.self, untilMs, clock);
      failure = '';
      if (term === undefined) notify({ type: 'elected', term: heldTerm });
      term = heldTerm;
    },
    otherLeads: (holder) => notify({ type: 'other-leads', holder }),
    failed(error) {
      if (messageOf(error) !== failure) log.warn({ err: error }, 'the lease could not be read or written; it is tried again');
      failure = messageOf(error);
    },
  },
  stop.signal,
);
if (why === undefined) notify({ type: 'released' });
else {
  revokeFence(setup.fencePath);
  notify({ type: 'lost', why });
  clock.after(endMs, endDaemon);
}
