import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { idOf } from '../../../test/support/stub-provider.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { runCommand } from '../../remote/run-command.ts';
import { systemClock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { NoticeWatch } from '../vm/fleet.ts';
import { rebalanceProbe } from './instances.ts';

const id = idOf('us-east-1/i-1');

/** A fake metadata service that requires a token, and a machine whose commands run on this computer. */
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
  isUnreachable = false;

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
      if (this.isUnreachable) throw new Error('away');
      return runCommand(argv, { env: wholeEnv(), clock: systemClock });
    },
  });
}

test('a rebalance recommendation shows at the next poll and stays', async () => {
  await withMachine(async (machine) => {
    const clock = new FakeClock();
    const watch = new NoticeWatch(clock, rebalanceProbe(machine.base));
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

test('an unreachable machine is polled every 30 s, one request at a time', async () => {
  await withMachine(async (machine) => {
    const clock = new FakeClock();
    const watch = new NoticeWatch(clock, rebalanceProbe(machine.base));
    machine.isUnreachable = true;
    for (let attempt = 0; attempt < 5; attempt += 1) expect(watch.noticeOf(id, machine.remote)).toBeUndefined();
    expect(machine.calls).toBe(1);
    await clock.advance(29_000);
    expect(watch.noticeOf(id, machine.remote)).toBeUndefined();
    expect(machine.calls).toBe(1);
    await clock.advance(1_000);
    expect(watch.noticeOf(id, machine.remote)).toBeUndefined();
    expect(machine.calls).toBe(2);
  });
});
