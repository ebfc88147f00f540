import { flushCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../shared/clock.ts';
import { hasErrno, messageOf } from '../../shared/errors.ts';
import { createLogger } from '../../shared/log.ts';
import { systemRandom } from '../../shared/random.ts';
import { Board } from '../board/board.ts';
import { DataPlane } from './data-plane.ts';
import { metricsRow } from '../metrics/row-layout.ts';
import type { ThreadNews, ThreadOrder, ThreadSetup } from './thread-messages.ts';

/** The entry point of a serving thread. An uncaught error ends it; the main thread then starts another one. */

const port = parentPort;
if (port === null) throw new Error('thread.ts is started by the balancer as a worker thread');

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread of the same program made it
const setup = workerData as ThreadSetup;
const logger = createLogger('balancer').child({ thread: setup.thread });

const report = (news: ThreadNews): void => port.postMessage(news);

const plane = new DataPlane({
  config: setup.config,
  tls: setup.tls,
  clock: systemClock,
  random: systemRandom,
  logger,
  row: { board: new Board(setup.board), thread: setup.thread },
  metricsRow: metricsRow(setup.metrics, setup.thread),
  limits: setup.limits,
  suspect: (replicaId, reason) => report({ type: 'suspect', replicaId, reason }),
  held: () => report({ type: 'held' }),
});

async function obey(order: ThreadOrder): Promise<void> {
  if (order.type === 'replicas') {
    plane.apply(order);
    return report({ type: 'applied', number: order.number });
  }
  if (order.type === 'tls') return plane.renewTls(order.material);
  await (order.type === 'stop' ? plane.stop(order.graceMs) : plane.handOver(order.graceMs));
  return report({ type: 'ended' });
}

port.on('message', (order: ThreadOrder) => void obey(order));
plane.apply(setup.replicas);
try {
  report({ type: 'listening', ...(await plane.listen(setup.listening)) });
  // As in main.ts: a killed process writes no cache.
  flushCompileCache();
} catch (error) {
  report({ type: 'failed', code: hasErrno(error, 'EADDRINUSE') ? 'EADDRINUSE' : '', message: messageOf(error) });
}
