import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../shared/clock.ts';
import type { LeaseLock } from '../../domain/leadership.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { createLogger } from '../../shared/log.ts';
import { systemRandom } from '../../shared/random.ts';
import { formerHolder, revokeFence, writeFence } from './fence-file.ts';
import { keepLease, leaseAfter } from './keep-lease.ts';
import type { KeeperNews, KeeperOrder, KeeperSetup } from './keeper-messages.ts';
import { openLease } from './lease-source.ts';

/**
 * The thread that keeps the lease: a daemon that is busy for seconds does not lose it, and one that was stopped does, as its threads stop with it. A
 * daemon whose own loop stands still for longer than any work takes is ended from here, so that another one can lead.
 */

/** The daemon says so each second. */
const stuckMs = 20_000;
const stuckLookMs = 1_000;
const openAgainMs = 500;
/** How long the daemon may take to end by itself after the loss, ms; nothing of what it does meanwhile gets through the fence. */
const endMs = 2_000;

const port = parentPort;
if (port === null) throw new Error('keeper.ts is started by the controller as a worker thread');

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread of the same program made it
const setup = workerData as KeeperSetup;
const log = createLogger('lease').child({ self: setup.self });
const clock = systemClock;
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node, not a window
const tell = (news: KeeperNews): void => port.postMessage(news);

const stop = new AbortController();
let term: number | undefined;
let beats = 0;
port.on('message', (order: KeeperOrder) => {
  if (order.type === 'beat') beats += 1;
  else endTerm();
});

/** A database that does not answer yet is waited for: a candidate has nothing else to do. */
async function openWhenThere(): Promise<LeaseLock> {
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

/** Nobody here may act from now on; then somebody else may. */
function endTerm(): void {
  revokeFence(setup.fencePath);
  stop.abort();
}

const endDaemon = (): void => void process.kill(process.pid, 'SIGKILL');

let beatsSeen = 0;
let silentMs = 0;
let lookedAt = clock.monotonic();
clock.every(stuckLookMs, () => {
  const now = clock.monotonic();
  // Time in which this thread stood still as well, as when the whole machine was suspended, says nothing of the other one.
  silentMs = beats === beatsSeen ? silentMs + Math.min(now - lookedAt, stuckLookMs) : 0;
  beatsSeen = beats;
  lookedAt = now;
  if (silentMs < stuckMs || stop.signal.aborted) return;
  log.error('the controller has stood still for too long and is ended');
  endTerm();
  clock.after(endMs, endDaemon);
});

let failure = '';
const lock = leaseAfter(await openWhenThere(), formerHolder(setup.fencePath));
const why = await keepLease(
  {
    lock,
    self: setup.self,
    clock,
    held(heldTerm, untilMs) {
      if (stop.signal.aborted) return;
      writeFence(setup.fencePath, heldTerm, setup.self, untilMs, clock);
      failure = '';
      if (term === undefined) tell({ type: 'elected', term: heldTerm });
      term = heldTerm;
    },
    otherLeads: (holder) => tell({ type: 'other-leads', holder }),
    failed(error) {
      if (messageOf(error) !== failure) log.warn({ err: error }, 'the lease could not be read or written; it is tried again');
      failure = messageOf(error);
    },
  },
  stop.signal,
);
if (why === undefined) tell({ type: 'released' });
else {
  revokeFence(setup.fencePath);
  tell({ type: 'lost', why });
  clock.after(endMs, endDaemon);
}
