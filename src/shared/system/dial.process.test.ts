import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { dial, dialReplica, DialError } from './dial.ts';
import { refusingPort } from '../../../test/support/raw-http.ts';

const timeoutMs = 10_000;
const open: { readonly servers: Server[]; readonly sockets: Socket[] } = { servers: [], sockets: [] };

afterEach(() => {
  for (const socket of open.sockets.splice(0)) socket.destroy();
  for (const server of open.servers.splice(0)) server.close();
});

async function serve(at: string | number, onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    open.sockets.push(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  open.servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(at, () => resolve());
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only asked for TCP servers
  return (server.address() as AddressInfo).port;
}

async function firstText(socket: Socket): Promise<string> {
  open.sockets.push(socket);
  let text = '';
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString();
  });
  socket.resume();
  return waitFor('text', () => (text.includes('!') ? text : undefined), { everyMs: 5 });
}

async function failure(dialling: Promise<Socket>): Promise<unknown> {
  try {
    (await dialling).destroy();
    return 'connected';
  } catch (error) {
    return error instanceof DialError ? error.code : error;
  }
}

test('TCP: the stream belongs to the replica immediately', async () => {
  const port = await serve(0, (socket) => socket.write('hi!'));
  expect(await firstText(await dialReplica({ kind: 'tcp', host: '127.0.0.1', port }, { timeoutMs }))).toBe('hi!');
});

test('Unix: bytes directly after the handshake are kept', async () => {
  await withTempHome(async (dir) => {
    const path = `${dir}/in.sock`;
    const asked: string[] = [];
    await serve(path, (socket) => {
      socket.once('data', (bytes: Buffer) => {
        asked.push(bytes.toString());
        socket.write('OK\nhi!');
      });
    });
    expect(await firstText(await dialReplica({ kind: 'unix', path, port: 8_080 }, { timeoutMs }))).toBe('hi!');
    expect(asked).toEqual(['8080\n']);
  });
});

test('forward: the stream starts without a handshake', async () => {
  await withTempHome(async (dir) => {
    const path = `${dir}/forward.sock`;
    await serve(path, (socket) => socket.write('hi!'));
    expect(await firstText(await dialReplica({ kind: 'forward', path, port: 8_080 }, { timeoutMs }))).toBe('hi!');
  });
});

test('Unix: a fragmented handshake answer is accepted', async () => {
  await withTempHome(async (dir) => {
    const path = `${dir}/in.sock`;
    await serve(path, (socket) => {
      socket.setNoDelay(true);
      socket.write('O');
      setTimeout(() => socket.write('K'), 20);
      setTimeout(() => socket.write('\n!'), 40);
    });
    expect(await firstText(await dialReplica({ kind: 'unix', path, port: 1 }, { timeoutMs }))).toBe('!');
  });
});

test.each([
  ['the forwarder reports a refused port', 'ERR ECONNREFUSED\n', 'ECONNREFUSED'],
  ['the forwarder sends an invalid answer', 'HELLO\n', 'EPROTO'],
  ['the forwarder never ends its line', 'O'.repeat(100), 'EPROTO'],
  ['the forwarder disconnects', '', 'ECONNRESET'],
])('Unix: DialError when %s', async (_, answer, code) => {
  await withTempHome(async (dir) => {
    const path = `${dir}/in.sock`;
    await serve(path, (socket) => socket.end(answer));
    expect(await failure(dialReplica({ kind: 'unix', path, port: 1 }, { timeoutMs }))).toBe(code);
  });
});

test('DialError when no process listens, for TCP and Unix sockets', async () => {
  await withTempHome(async (dir) => {
    const port = await refusingPort();
    expect(await failure(dialReplica({ kind: 'tcp', host: '127.0.0.1', port }, { timeoutMs }))).toBe('ECONNREFUSED');
    expect(await failure(dialReplica({ kind: 'unix', path: `${dir}/none.sock`, port }, { timeoutMs }))).toBe('ENOENT');
  });
});

test('a handshake timeout is a DialError with the address in its message', async () => {
  await withTempHome(async (dir) => {
    const path = `${dir}/in.sock`;
    await serve(path, () => undefined);
    const dialling = dialReplica({ kind: 'unix', path, port: 7 }, { timeoutMs: 50 });
    await expect(dialling).rejects.toThrow(`Never reached the replica at ${path} port 7: ETIMEDOUT`);
  });
});

test('a cancelled dial closes its connection and never calls done', async () => {
  await withTempHome(async (dir) => {
    const path = `${dir}/in.sock`;
    let closed = 0;
    let accepted = 0;
    await serve(path, (socket) => {
      accepted += 1;
      socket.resume();
      socket.on('close', () => {
        closed += 1;
      });
    });
    let called = 0;
    const clock = new FakeClock();
    const cancel = dial({ kind: 'unix', path, port: 1 }, { timeoutMs, clock }, () => {
      called += 1;
    });
    await waitFor('the connection', () => accepted === 1);
    cancel();
    cancel();
    await waitFor('its end', () => closed === 1);
    await clock.advance(2 * timeoutMs);
    expect(called).toBe(0);
  });
});
