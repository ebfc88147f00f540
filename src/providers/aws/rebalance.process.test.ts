import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { idOf } from '../../../test/support/stub-place.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { runCommand } from '../../remote/run-command.ts';
import { systemClock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { RebalanceWatch } from './rebalance.ts';

const id = idOf('us-east-1/i-1');

/** The metadata service of a machine, which tells nothing without a token, and a machine that runs commands here. */
async function withMachine(use: (machine: Machine) => Promise<void>): Promise<void> {
  const machine = new Machine();
  const server = createServer((request, response) => machine.answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  machine.base = `http://127.0.0.1:${address.port}`;
  try {
    await use(machine);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

class Machine {
  base = '';
  recommended: string | undefined;
  calls = 0;
  isAway = false;

  answer({ method, url, headers }: IncomingMessage, response: ServerResponse): void {
    if (method === 'PUT' && url === '/latest/api/token') return void response.end('t0ken');
    const isAllowed = headers['x-aws-ec2-metadata-token'] === 't0ken';
    const isKnown = url === '/latest/meta-data/events/recommendations/rebalance' && this.recommended !== undefined;
    response.statusCode = isAllowed ? (isKnown ? 200 : 404) : 401;
    response.end(isAllowed && isKnown ? JSON.stringify({ noticeTime: this.recommended }) : 'no such thing');
    return undefined;
  }

  remote = () => ({
    exec: async (argv: readonly string[]) => {
      this.calls += 1;
      if (this.isAway) throw new Error('away');
      return runCommand(argv, { env: wholeEnv(), clock: systemClock });
    },
  });
}

test('a recommendation that only the machine is told shows at the next look, and stays', async () => {
  await withMachine(async (machine) => {
    const clock = new FakeClock();
    const watch = new RebalanceWatch(clock, machine.base);
    expect(watch.noticeOf(id, machine.remote)).toBeUndefined();
    await waitFor('the first answer', () => machine.calls === 1);
    machine.recommended = '2026-06-01T10:00:00Z';
    const found = await waitFor('the recommendation', async () => {
      await clock.advance(30_000);
      return watch.noticeOf(id, machine.remote);
    });
    expect(found).toEqual({ kind: 'rebalance', at: Date.parse('2026-06-01T10:00:00Z') });
    const { calls } = machine;
    await clock.advance(120_000);
    expect(watch.noticeOf(id, machine.remote)).toEqual(found);
    expect(machine.calls).toBe(calls);
  });
});

test('a machine is asked each half minute, one question at a time, and one that does not answer says nothing', async () => {
  await withMachine(async (machine) => {
    const clock = new FakeClock();
    const watch = new RebalanceWatch(clock, machine.base);
    machine.isAway = true;
    for (let look = 0; look < 5; look += 1) expect(watch.noticeOf(id, machine.remote)).toBeUndefined();
    expect(machine.calls).toBe(1);
    await clock.advance(29_000);
    expect(watch.noticeOf(id, machine.remote)).toBeUndefined();
    expect(machine.calls).toBe(1);
    await clock.advance(1_000);
    expect(watch.noticeOf(id, machine.remote)).toBeUndefined();
    expect(machine.calls).toBe(2);
  });
});
