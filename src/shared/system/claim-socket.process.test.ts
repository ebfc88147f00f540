import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { claimSocket, isListenedOn } from './claim-socket.ts';

async function listenAt(path: string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end(path)).listen(path);
  await once(server, 'listening');
  return server;
}

/** The process that answers on the socket. */
async function answerAt(path: string): Promise<string> {
  const socket = connect({ path });
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
  await once(socket, 'close');
  return text;
}

test('of concurrent claims of an abandoned socket name exactly one succeeds', async () => {
  await withTempHome(async (dir) => {
    const name = join(dir, 's');
    const former = await listenAt(join(dir, 'former'));
    await claimSocket(join(dir, 'former'), name);
    former.close();
    expect([existsSync(name), await isListenedOn(name)]).toEqual([true, false]);

    const own = Array.from({ length: 8 }, (_, index) => join(dir, String(index)));
    const servers = await Promise.all(own.map(listenAt));
    try {
      const claims = await Promise.all(own.map((path) => claimSocket(path, name)));
      const winners = own.filter((_, index) => claims[index]);
      expect(winners).toHaveLength(1);
      expect(await answerAt(name)).toBe(winners[0]);
      expect(await claimSocket(own[0] ?? '', name)).toBe(false);
    } finally {
      for (const server of servers) server.close();
    }
  });
});
