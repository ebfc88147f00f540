import { parentPort, workerData } from 'node:worker_threads';
import { Board } from '../../src/balancer/board/board.ts';
import type { ThreadNews, ThreadOrder, ThreadSetup } from '../../src/balancer/threads/thread-messages.ts';

/**
 * Replaces `src/balancer/threads/thread.ts`: counts a request in its row and reports that it listens. The thread with
 * number 0 dies of an uncaught error at endpoint set 1, and exits silently at set 2.
 */

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as thread.ts does
const { thread, board: memory } = workerData as ThreadSetup;
const board = new Board(memory);
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node, not a window
const report = (news: ThreadNews): void => parentPort?.postMessage(news);

parentPort?.on('message', (order: ThreadOrder) => {
  if (order.type !== 'replicas') return report({ type: 'ended' });
  if (thread === 0 && order.number === 1) throw new Error('died on purpose');
  // oxlint-disable-next-line unicorn/no-process-exit -- simulates a thread that exits silently
  if (thread === 0 && order.number === 2) process.exit(9);
  return report({ type: 'applied', number: order.number });
});

Atomics.add(board.cells, board.rowCell('inFlight', thread, 0), 1);
Atomics.store(board.cells, board.threadCell('connections', thread), 1);
report({ type: 'listening', port: 4_711, fds: [] });
