import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Deadlines } from './deadlines.ts';
import { PausedClients } from './paused-clients.ts';

test('a client is probed several times a second, only while paused', async () => {
  const clock = new FakeClock();
  const paused = new PausedClients(new Deadlines(clock));
  let probes = 0;
  const client = { probe: () => void (probes += 1) };
  await clock.advance(1_000);
  expect(probes).toBe(0);
  paused.add(client);
  await clock.advance(1_000);
  expect(probes).toBeGreaterThanOrEqual(5);
  const before = probes;
  paused.delete(client);
  await clock.advance(1_000);
  expect(probes).toBe(before);
});
