import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock } from '../../shared/clock.ts';
import { ReplicaRelays } from './replica-relay.ts';

const deps = { clock: systemClock, log: pino({ level: 'silent' }), ownAddress: '127.0.0.1' };

async function speak(port: number, said: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let received = '';
  socket.on('data', (piece) => (received += piece.toString('utf8')));
  socket.on('error', (error) => (received += `error ${error.message}`));
  socket.end(said);
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on('close', resolve);
  await promise;
  return received;
}

test('remote balancers reach a replica behind a local socket until it leaves the set', () =>
  withTempHome(async (dir) => {
    const path = join(dir, 'f.sock');
    const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
      let text = '';
      socket.on('data', (piece) => (text += piece.toString('utf8')));
      socket.on('end', () => socket.end(`heard ${text}`));
    });
    server.listen(path);
    await once(server, 'listening');
    const relays = new ReplicaRelays(deps);
    const near = aBalancerReplica(80, 1, { address: { kind: 'forward', path, port: 80 } });
    const far = aBalancerReplica(80, 2, { address: { kind: 'tcp', host: '10.1.2.3', port: 80 } });
    try {
      const command = { type: 'replicas', epoch: 'e', revision: 1, replicas: [near, far] } as const;
      const [first, second] = relays.translate(command).replicas;
      expect(second).toEqual(far);
      expect(first).toMatchObject({ id: 1, address: { kind: 'tcp', host: '127.0.0.1' } });
      const port = first?.address.port ?? 0;
      expect(await speak(port, 'hello')).toBe('heard hello');
      // The port stays the same.
      expect(relays.translate({ ...command, revision: 2 }).replicas[0]).toEqual(first);

      relays.translate({ ...command, revision: 3, replicas: [far] });
      expect(await speak(port, 'hello')).toContain('ECONNREFUSED');
    } finally {
      relays.close();
      server.close();
    }
  }));

test('a connection to an unreachable replica is reset', () =>
  withTempHome(async (dir) => {
    const relays = new ReplicaRelays(deps);
    const near = aBalancerReplica(80, 1, { address: { kind: 'forward', path: join(dir, 'none.sock'), port: 80 } });
    try {
      const [first] = relays.translate({ type: 'replicas', epoch: 'e', revision: 1, replicas: [near] }).replicas;
      expect(await speak(first?.address.port ?? 0, 'hello')).toMatch(/ECONNRESET|EPIPE/);
    } finally {
      relays.close();
    }
  }));
