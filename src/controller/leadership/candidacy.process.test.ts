import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { splitLines } from '../../shared/lines.ts';
import { Candidacy } from './candidacy.ts';
import { lostLeaseExitCode } from './exit-code.ts';

const program = fileURLToPath(new URL('../../../test/support/leading-program.ts', import.meta.url));
const children: ChildProcess[] = [];
const servers: Server[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const server of servers.splice(0)) server.close();
});

/** A place that takes calls from whoever connects, and remembers who called in which order. */
async function recordingPlace(): Promise<{ readonly port: number; readonly calls: string[] }> {
  const calls: string[] = [];
  const server = createServer((socket) => {
    socket.on(
      'data',
      splitLines((line) => calls.push(line)),
    );
    socket.on('error', () => undefined);
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, calls };
}

function lead(name: string, home: string, port: number): ChildProcess {
  const child = spawn(process.execPath, [program, name, `${home}/state.db`, `${home}/${name}.json`, String(port)], { stdio: 'inherit' });
  children.push(child);
  return child;
}

test('a leader that is stopped for longer than its lease calls no place when it goes on, and ends', { timeout: 60_000 }, () =>
  withTempHome(async (home) => {
    const { port, calls } = await recordingPlace();
    const first = lead('first', home, port);
    await waitFor('the first one to lead', () => calls.length > 20);
    lead('second', home, port);
    first.kill('SIGSTOP');

    await waitFor('the second one to lead', () => calls.includes('second 2'));
    const since = calls.indexOf('second 2');
    const ended = once(first, 'exit');
    first.kill('SIGCONT');

    expect(await ended).toEqual([lostLeaseExitCode, null]);
    await waitFor('more calls of the second one', () => calls.length > since + 50);
    expect(calls.slice(0, since).every((call) => call === 'first 1')).toBe(true);
    expect(calls.slice(since).every((call) => call === 'second 2')).toBe(true);
  }),
);

test('one that is told to end makes room at once, and one that is killed in time', { timeout: 60_000 }, () =>
  withTempHome(async (home) => {
    const { port, calls } = await recordingPlace();
    const first = lead('first', home, port);
    await waitFor('the first one to lead', () => calls.length > 0);
    const second = lead('second', home, port);
    lead('third', home, port);
    await waitFor('the others to stand by', () => calls.length > 400);
    const ended = once(first, 'exit');
    first.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    const next = await waitFor('another one to lead', () => calls.find((call) => call.endsWith(' 2')), { timeoutMs: 5_000, everyMs: 5 });
    (next.startsWith('second') ? second : children[2])?.kill('SIGKILL');
    await waitFor('the last one to lead', () => calls.some((call) => call.endsWith(' 3')));
  }),
);

test('whoever has given its lease back waits for nothing any more', { timeout: 60_000 }, () =>
  withTempHome(async (home) => {
    const clock = new FakeClock();
    const source = { kubernetes: undefined, state: { path: `${home}/state.db`, database: undefined } };
    const listeners = { otherLeads: () => undefined, lost: () => undefined };
    const candidacy = new Candidacy(source, `${home}/fence.json`, clock, listeners);
    expect(await candidacy.elected).toBe(1);
    expect(clock.pendingTimers).toBe(1);
    await candidacy.release();
    expect(clock.pendingTimers).toBe(0);
  }),
);
