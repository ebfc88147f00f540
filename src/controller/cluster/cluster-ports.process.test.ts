import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { Remote } from '../../remote/remote.ts';
import { systemClock } from '../../shared/clock.ts';
import { ClusterPorts } from './cluster-ports.ts';

const deps = { key: 'a1b2', clock: systemClock, log: pino({ level: 'silent' }) };

/** A machine whose program listens on a socket. Without one it is this computer. */
function aRemote(socket: string | undefined): Pick<Remote, 'baseDir' | 'localPath' | 'address'> {
  const address: Remote['address'] = async (port, options) => {
    if (options?.isolated !== false) throw new Error('the program of a cluster is not isolated');
    return { kind: 'forward', path: socket ?? '', port };
  };
  return { baseDir: '/machine', localPath: (path) => (socket === undefined ? path : undefined), address };
}

/** Sends `text` and returns all that comes back; an error's code when the connection fails. */
async function ask(address: string, text: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: Number(address.split(':')[1]), allowHalfOpen: true });
  socket.end(text);
  return buffer(socket).then(String, (error: NodeJS.ErrnoException) => error.code ?? error.message);
}

test('a port is passed on to the machine, half-closed connections too', () =>
  withTempHome(async (dir) => {
    const socket = join(dir, 'p.sock');
    const program = createServer(
      { allowHalfOpen: true },
      (client) => void buffer(client).then((text) => client.end(`heard ${String(text)}`)),
    );
    await once(program.listen(socket), 'listening');
    const ports = new ClusterPorts(deps);
    try {
      await ports.open([8080], aRemote(socket));
      await ports.open([8080], aRemote(socket));
      expect(ports.all).toEqual([{ port: 8080, address: expect.stringMatching(/^127\.0\.0\.1:2\d{4}$/) }]);
      const [{ address } = { address: '' }] = ports.all;
      expect(await ask(address, 'hello')).toBe('heard hello');
      program.close();
      expect(await ask(address, 'hello')).toBe('ECONNRESET');
      ports.close();
      expect([ports.all, await ask(address, 'hello')]).toEqual([[], 'ECONNREFUSED']);
    } finally {
      ports.close();
      program.close();
    }
  }));

test('a cluster gets the same port again, and the next one when that is taken', async () => {
  const first = new ClusterPorts(deps);
  const other = new ClusterPorts(deps);
  try {
    await first.open([8080], aRemote('/none'));
    const [{ address } = { address: '' }] = first.all;
    await other.open([8080], aRemote('/none'));
    expect(other.all).toEqual([{ port: 8080, address: expect.not.stringContaining(address) }]);
    first.close();
    await first.open([8080], aRemote('/none'));
    expect(first.all).toEqual([{ port: 8080, address }]);
  } finally {
    first.close();
    other.close();
  }
});

test('a program of this computer is reached at its own port', async () => {
  const ports = new ClusterPorts(deps);
  await ports.open([9000, 8080], aRemote(undefined));
  expect(ports.all).toEqual([
    { port: 8080, address: '127.0.0.1:8080' },
    { port: 9000, address: '127.0.0.1:9000' },
  ]);
});
