import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../../test/support/balancer.ts';
import { RawClient, scriptedReplica, withReplicas } from '../../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';

const get = 'GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 127.0.0.3\r\nConnection: close\r\n\r\n';
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** The bytes that a client gets, and how its connection ends. */
async function ask(port: number, from: string): Promise<{ readonly received: string; readonly ended: string | undefined }> {
  const client = new RawClient(port, from).send(get);
  await client.closed();
  const { received, ended } = client;
  client.destroy();
  return { received, ended };
}

const refused = async (balancer: RunningBalancer): Promise<number | undefined> =>
  (await balancer.metrics()).get('svc_balancer_refused_connections_total{reason="address"}');

test('a client that is not allowed is reset without a byte, and counted', async () => {
  await withReplicas([scriptedReplica(ok)], async (replica) => {
    await withBalancer(
      [aBalancerReplica(replica?.port ?? 0)],
      async (balancer) => {
        expect(await refused(balancer)).toBe(0);
        expect((await ask(balancer.port, '127.0.0.3')).received).toMatch(/ok$/);
        expect(replica?.accepted()).toBe(1);
        for (const from of ['127.0.0.2', '127.0.0.5']) expect(await ask(balancer.port, from)).toEqual({ received: '', ended: 'reset' });
        expect((await ask(balancer.port, '127.0.0.6')).received).toMatch(/ok$/);
        expect(await refused(balancer)).toBe(2);
        expect((await balancer.accessLog(4)).map((line) => line['outcome'])).toEqual(['ok', 'no_request', 'no_request', 'ok']);
      },
      { allow: ['127.0.0.3', '127.0.0.6/31', '::1'], trustedProxies: ['127.0.0.2'] },
    );
  });
});

test('with TLS, no handshake begins', async () => {
  await withTlsBalancer(
    [],
    async (balancer) => {
      expect(await ask(balancer.port, '127.0.0.2')).toEqual({ received: '', ended: 'reset' });
      expect((await ask(balancer.port, '127.0.0.1')).received).toMatch(/^HTTP\/1\.1 400 [^]*speaks TLS/);
      expect((await balancer.metrics()).get('svc_balancer_tls_handshake_failures_total')).toBe(0);
    },
    { allow: ['127.0.0.1'] },
  );
});
