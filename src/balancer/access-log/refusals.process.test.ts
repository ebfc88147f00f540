import { connect, type ConnectionOptions } from 'node:tls';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer } from '../../../test/support/balancer.ts';
import { Flag, field, frame, FrameClient, FrameType, requestFields } from '../../../test/support/http2-frames.ts';
import { RawClient, rawExchange, scriptedReplica, withReplicas } from '../../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';
import { tlsRules } from '../../domain/tls-rules.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Begins a handshake, and waits for the end of its connection. */
function handshake(port: number, options: ConnectionOptions): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
  });
}

test('a refused request is logged with the part of its first line that was read', async () => {
  await withBalancer([], async (balancer) => {
    for (const head of [
      'GET /a?key=1 HTTP/1.1\r\n\r\n',
      'GET /a b HTTP/1.1\r\n',
      'GET http://user:secret@a/ HTTP/1.1\r\nHost: a\r\n\r\n',
      'G(T / HTTP/1.1\r\n',
    ])
      await rawExchange(balancer.port, head);
    const lines = await balancer.accessLog(4);
    expect(lines.map(({ status, outcome, method, path, code }) => [status, outcome, method, path, code])).toEqual([
      [400, 'refused', 'GET', '/a', 'bad_host'],
      [400, 'refused', 'GET', '/a', 'bad_version'],
      [400, 'refused', 'GET', '', 'bad_target'],
      [400, 'refused', '', '', 'bad_method'],
    ]);
  });
});

test('a refused HTTP/2 request is logged with its method and path', async () => {
  await withTlsBalancer([], async (balancer) => {
    const client = new FrameClient(balancer.port);
    const fields = Buffer.concat([requestFields('/a?key=1', 'PUT'), field('expect', 'more')]);
    client.send(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, 1, fields));
    expect((await balancer.accessLog(1))[0]).toMatchObject({ status: 417, outcome: 'refused', method: 'PUT', path: '/a', protocol: 'h2' });
    client.destroy();
  });
});

test('the log names clients if the service asks for it, also those that may not connect', async () => {
  await withReplicas([scriptedReplica(ok)], async (replica) => {
    await withBalancer(
      [aBalancerReplica(replica?.port ?? 0)],
      async (balancer) => {
        for (const address of ['127.0.0.3', '127.0.0.2']) {
          const client = new RawClient(balancer.port, address).send('GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
          await client.closed();
          client.destroy();
        }
        expect(await balancer.accessLog(2)).toMatchObject([
          { client: '127.0.0.3', outcome: 'ok', path: '/a' },
          { client: '127.0.0.2', outcome: 'no_request', code: 'address_not_allowed', status: 0, method: '' },
        ]);
      },
      { allow: ['127.0.0.3'], accessLogAddresses: true },
    );
  });
});

test('a failed handshake is logged with its error, and plain HTTP at a TLS port too', async () => {
  await withTlsBalancer(
    [],
    async (balancer) => {
      await handshake(balancer.port, { maxVersion: 'TLSv1.2' });
      await rawExchange(balancer.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      const lines = await balancer.accessLog(2);
      expect(lines).toMatchObject([
        { outcome: 'no_request', code: 'tls_handshake_failed', fault: 'ERR_SSL_UNSUPPORTED_PROTOCOL', tls: true },
        { outcome: 'no_request', code: 'tls_required' },
      ]);
      // An address is personal data, so the service must ask for it.
      for (const line of lines) expect(line).not.toHaveProperty('client');
      expect((await balancer.metrics()).get('svc_balancer_tls_handshake_failures_total')).toBe(1);
    },
    { tlsRules: tlsRules({ minVersion: '1.3' }) },
  );
});
