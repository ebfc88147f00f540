import { parentPort, workerData } from 'node:worker_threads';
import { Board } from '../../src/balancer/board/board.ts';
import type { ThreadNews, ThreadOrder, ThreadSetup } from '../../src/balancer/threads/thread-messages.ts';

/**
 * In place of `src/balancer/threads/thread.ts`: counts a request in its row and says that it listens. The thread with number 0 dies of an uncaught error
 * when set 1 comes, and ends without a word when set 2 does.
 */

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as thread.ts does
const { thread, board: memory } = workerData as ThreadSetup;
const board = new Board(memory);
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node, not a window
const tell = (news: ThreadNews): void => parentPort?.postMessage(news);

parentPort?.on('message', (order: ThreadOrder) => {
  if (order.type !== 'replicas') return tell({ type: 'ended' });
  if (thread === 0 && order.number === 1) throw new Error('died on purpose');
  // oxlint-disable-next-line unicorn/no-process-exit -- the end of a thread without a word
  if (thread === 0 && order.number === 2) process.exit(9);
  return tell({ type: 'applied', number: order.number });
});

Atomics.add(board.cells, board.rowCell('inFlight', thread, 0), 1);
Atomics.store(board.cells, board.threadCell('connections', thread), 1);
tell({ type: 'listening', port: 4_711, fds: [] });
