import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { leaseReleaseMs, type LeaseView } from '../../domain/leadership.ts';
import { systemClock } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import { openStore } from '../../store/open-store.ts';
import { LeaderElection } from './leader-lease.ts';
import { lostLeaseExitCode } from './lease-source.ts';

const program = fileURLToPath(new URL('../../../test/support/leading-program.ts', import.meta.url));
const children: ChildProcess[] = [];
const servers: Server[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const server of servers.splice(0)) server.close();
});

/** A provider stub that accepts calls from any client and records the callers in order. */
async function recordingProvider(): Promise<{ readonly port: number; readonly calls: string[] }> {
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

interface Contender {
  readonly child: ChildProcess;
  readonly said: readonly string[];
}

function lead(name: string, home: string, port: number): Contender {
  const args = [program, name, `${home}/state.db`, `${home}/${name}.json`, String(port)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const said: string[] = [];
  child.stdout.on(
    'data',
    splitLines((line) => said.push(line)),
  );
  return { child, said };
}

/**
 * Whether all threads of a process are stopped, none of them in the middle of a write: that would block all other
 * writers for ever.
 */
function isPaused(pid: number, home: string): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  if (stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'T') return false;
  // Running processes release the database lock within this time.
  const database = new DatabaseSync(`${home}/state.db`, { timeout: 500 });
  try {
    database.exec('begin immediate; rollback');
    return true;
  } catch {
    return false;
  } finally {
    database.close();
  }
}

async function readLease(home: string): Promise<LeaseView> {
  const store = await openStore({ path: `${home}/state.db`, clock: systemClock });
  try {
    return await store.leadership.read();
  } finally {
    await store.close();
  }
}

/** Stops a leader. */
async function pause({ pid = 0 }: ChildProcess, home: string): Promise<void> {
  process.kill(pid, 'SIGUSR2');
  await waitFor('the leader to stand still', () => {
    if (isPaused(pid, home)) return true;
    process.kill(pid, 'SIGCONT');
    process.kill(pid, 'SIGUSR2');
    return false;
  });
}

test('a leader paused beyond its lease calls no provider after it resumes, and ends', () =>
  withTempHome(async (home) => {
    const { port, calls } = await recordingProvider();
    const first = lead('first', home, port).child;
    await waitFor('the first one to lead', () => calls.length > 20);
    lead('second', home, port);
    await pause(first, home);

    await waitFor('the second one to lead', () => calls.includes('second 2'));
    const since = calls.indexOf('second 2');
    const ended = once(first, 'exit');
    first.kill('SIGCONT');

    expect(await ended).toEqual([lostLeaseExitCode, null]);
    await waitFor('more calls of the second one', () => calls.length > since + 50);
    expect(calls.slice(0, since).every((call) => call === 'first 1')).toBe(true);
    expect(calls.slice(since).every((call) => call === 'second 2')).toBe(true);
  }));

test('a terminated leader is replaced at once, a killed one when its lease expires', () =>
  withTempHome(async (home) => {
    const { port, calls } = await recordingProvider();
    const first = lead('first', home, port).child;
    await waitFor('the first one to lead', () => calls.length > 0);
    const others = [lead('second', home, port), lead('third', home, port)] as const;
    await waitFor('the others to stand by', () => others.every(({ said }) => said.some((line) => line.endsWith('stands by'))));
    const former = await readLease(home);
    const ended = once(first, 'exit');
    first.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    // The other candidates need not wait for the lease to expire: it was released, or another one holds it by now.
    const { holder, durationMs } = await readLease(home);
    expect(holder === former.holder ? durationMs : leaseReleaseMs).toBe(leaseReleaseMs);
    const next = await waitFor('another one to lead', () => calls.find((call) => call.endsWith(' 2')), { everyMs: 5 });
    others[next.startsWith('second') ? 0 : 1].child.kill('SIGKILL');
    await waitFor('the last one to lead', () => calls.some((call) => call.endsWith(' 3')));
  }));

test('after a release no timer is pending', () =>
  withTempHome(async (home) => {
    const clock = new FakeClock();
    const source = { kubernetes: undefined, state: { path: `${home}/state.db`, database: undefined } };
    const listeners = { otherLeads: () => undefined, lost: () => undefined };
    const election = new LeaderElection(source, `${home}/fence.json`, clock, listeners);
    expect(await election.elected).toBe(1);
    expect(clock.pendingTimers).toBe(1);
    await election.release();
    expect(clock.pendingTimers).toBe(0);
  }));
