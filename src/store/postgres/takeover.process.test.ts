import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, expect, test } from 'vitest';
import { printFigures } from '../../../test/support/figures.ts';
import { needs } from '../../../test/support/needs.ts';
import { closeSharedPostgres, newSchema } from '../../../test/support/postgres.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { openStore } from '../open-store.ts';

const script = new URL('../../../test/support/term-writer.ts', import.meta.url).pathname;
const started = new Set<ChildProcess>();

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started.clear();
});

interface Contender {
  readonly child: ChildProcess;
  said(): string;
}

function startContender(database: string, name: string): Contender {
  const env = { ...wholeEnv(), SVC_DATABASE: database };
  const child = spawn(process.execPath, [script, '', name], { stdio: ['ignore', 'pipe', 'inherit'], env });
  started.add(child);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return { child, said: () => output };
}

// With SQLite a paused leader may keep the lock of all writers, and no controller on another machine could break it.
needs('postgres', () => {
  afterAll(closeSharedPostgres);

  test('after kill -9 of the leader another leads, and a paused leader cannot write', async () => {
    const database = await newSchema();
    const store = await openStore({ path: '', database, clock: systemClock });
    try {
      const leads = (writer: Contender, term: number): Promise<boolean> =>
        waitFor(`term ${term}`, () => writer.said().includes(`leads ${term}\n`));
      const first = startContender(database, 'first');
      await leads(first, 1);
      const second = startContender(database, 'second');
      const third = startContender(database, 'third');
      await waitFor('something written', async () => (await store.events.list({ subject: 'terms' })).length > 20);
      await waitFor('the others to stand by', () => [second, third].every((writer) => writer.said() === 'stands by\n'));
      const killedAt = systemClock.monotonic();
      first.child.kill('SIGKILL');
      const next = await waitFor('another leader', () => [second, third].find((writer) => writer.said().includes('leads')));
      await leads(next, 2);
      const afterKillMs = systemClock.monotonic() - killedAt;

      await waitFor('something written', async () => (await store.events.list({ subject: 'terms' })).some(({ cause }) => cause === '2'));
      const pausedAt = systemClock.monotonic();
      next.child.kill('SIGSTOP');
      const last = next === second ? third : second;
      await leads(last, 3);
      printFigures('a new leader over PostgreSQL, ms', { afterKill: afterKillMs, afterPause: systemClock.monotonic() - pausedAt });
      next.child.kill('SIGCONT');
      await once(next.child, 'close');
      expect(next.said()).toBe('stands by\nleads 2\nrefused SVC_NOT_LEADER\n');
      last.child.kill('SIGKILL');
      const terms = (await store.events.list({ subject: 'terms' })).map(({ cause }) => Number(cause));
      expect(terms).toEqual(terms.toSorted((a, b) => a - b));
      expect(new Set(terms)).toEqual(new Set([1, 2, 3]));
    } finally {
      await store.close();
    }
  });
});
