import { join } from 'node:path';
import type { Contestant } from '../contestant.ts';
import { freePorts, startProgram, untilListening } from '../processes.ts';

/**
 * The lower bound for a proxy on Node.js: it relays bytes unread and chooses no replica per request (see
 * `raw-relay.ts`).
 */
export const raw: Contestant = {
  name: 'raw',
  async start({ replicaPorts }) {
    const [port = 0] = await freePorts(1);
    const program = startProgram(process.execPath, [
      join(import.meta.dirname, '../raw-relay.ts'),
      String(port),
      ...replicaPorts.map(String),
    ]);
    await untilListening(port, program);
    return { port, pid: program.pid, stop: () => program.stop() };
  },
};
