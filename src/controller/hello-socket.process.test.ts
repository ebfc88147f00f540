import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { systemClock } from '../shared/clock.ts';
import { identifyProcess } from '../shared/system/process-identity.ts';
import { greet } from './greeting.ts';
import { serveHello } from './hello-socket.ts';

test('the socket sends the hello and heartbeats, and receives lines', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'run', 'r.sock');
    const lines: string[] = [];
    const hello = await serveHello(path, { clock: systemClock, version: '1.2.3+abc', onLine: (line) => lines.push(line) });
    const greeting = await greet(path, { clock: systemClock, timeoutMs: 10_000 });
    expect(greeting).toMatchObject({ identity: identifyProcess(process.pid), version: '1.2.3+abc', config: undefined });
    greeting?.socket.write('wake\n');
    await waitFor('the line', () => lines.length > 0);
    expect(lines).toEqual(['wake']);
    await waitFor('a sign of life', () => (greeting?.heartbeats() ?? 0) > 0);
    hello.close();
    await greeting?.closed;
    expect(await greet(path, { clock: systemClock, timeoutMs: 10_000 })).toBeUndefined();
  });
});
