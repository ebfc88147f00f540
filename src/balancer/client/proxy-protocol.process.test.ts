import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../../test/support/balancer.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { needs } from '../../../test/support/needs.ts';
import { binaryProxyHeader as binary } from '../../../test/support/proxy-headers.ts';
import { httpReplica, RawClient, withReplicas } from '../../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { BalancerConfig } from '../../domain/balancer-link.ts';

const run = promisify(execFile);

/** Answers with the client that the balancer reports. */
const echo = (): ReturnType<typeof httpReplica> =>
  httpReplica((incoming, response) => {
    response.end(`for ${String(incoming.headers['x-forwarded-for'])}`);
  });

const get = 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n';

/** All bytes that the balancer sends, or how it ends the connection without any. */
async function answer(port: number, sent: string, from?: string): Promise<string> {
  const client = new RawClient(port, from).send(sent);
  try {
    return (await client.closed()) || String(client.ended);
  } finally {
    client.destroy();
  }
}

async function behindProxy(config: Partial<BalancerConfig>, use: (balancer: RunningBalancer) => Promise<void>): Promise<void> {
  await withReplicas([echo()], async (replica) => {
    await withBalancer([aBalancerReplica(replica?.port ?? 0)], use, { proxyProtocol: ['127.0.0.1'], ...config });
  });
}

const refused = async (balancer: RunningBalancer): Promise<readonly (number | undefined)[]> => {
  const metrics = await balancer.metrics();
  return ['address', 'proxy_header'].map((reason) => metrics.get(`svc_balancer_refused_connections_total{reason="${reason}"}`));
};

test('the client of the header is the client, and trusted proxies are found by it', async () => {
  await behindProxy({ trustedProxies: ['198.51.100.0/24'] }, async (balancer) => {
    expect(await answer(balancer.port, `PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n${get}`)).toMatch(/for 192\.0\.2\.7$/);
    expect(await answer(balancer.port, binary({}).toString('latin1') + get)).toMatch(/for 192\.0\.2\.1$/);
    expect(await answer(balancer.port, `PROXY TCP4 198.51.100.7 127.0.0.1 1 2\r\n${get}`)).toMatch(/for 203\.0\.113\.9, 198\.51\.100\.7$/);
    expect(await answer(balancer.port, `PROXY UNKNOWN\r\n${get}`)).toMatch(/for 127\.0\.0\.1$/);
    const slow = new RawClient(balancer.port);
    for (const character of `PROXY TCP4 192.0.2.8 127.0.0.1 1 2\r\n${get}`) {
      slow.send(character);
      await waitFor('it to be sent', () => slow.socket.writableLength === 0, { everyMs: 1 });
    }
    expect(await slow.closed()).toMatch(/for 192\.0\.2\.8$/);
  });
});

test('from a proxy the header is mandatory and strict; from others it is no header', async () => {
  await behindProxy({}, async (balancer) => {
    for (const bad of [get, '\r\nX', `PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n${get}`, binary({ command: 0x11 }).toString('latin1') + get])
      expect(await answer(balancer.port, bad)).toBe('reset');
    expect(await refused(balancer)).toEqual([0, 4]);
    expect(await answer(balancer.port, `PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n${get}`, '127.0.0.2')).toMatch(/^HTTP\/1\.1 400 /);
    expect(await answer(balancer.port, get, '127.0.0.2')).toMatch(/for 127\.0\.0\.2$/);
  });
});

test('the client of the header must be allowed, not the proxy', async () => {
  await behindProxy({ allow: ['192.0.2.0/24'] }, async (balancer) => {
    expect(await answer(balancer.port, `PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n${get}`)).toMatch(/for 192\.0\.2\.7$/);
    expect(await answer(balancer.port, `PROXY TCP4 192.0.3.7 127.0.0.1 1 2\r\n${get}`)).toBe('reset');
    expect(await answer(balancer.port, `PROXY UNKNOWN\r\n${get}`)).toBe('reset');
    expect(await answer(balancer.port, get, '127.0.0.2')).toBe('reset');
    expect(await refused(balancer)).toEqual([3, 0]);
  });
});

test('a proxy that sends nothing is closed after seconds and counted', async () => {
  await behindProxy({}, async (balancer) => {
    const silent = new RawClient(balancer.port).send('PROXY ');
    await silent.closed();
    expect(await refused(balancer)).toEqual([0, 1]);
  });
});

needs('curl', () => {
  test('curl speaks it, and connections stay open for more requests', async () => {
    await behindProxy({}, async ({ url }) => {
      const { stdout } = await run('curl', ['-sS', '--haproxy-protocol', `${url}/a`, `${url}/b`]);
      expect(stdout).toBe('for 127.0.0.1for 127.0.0.1');
    });
  });

  test('it comes before TLS, with HTTP/2 as well, and before a redirect', async () => {
    const httpRedirectPort = await freePort();
    await withReplicas([echo()], async (replica) => {
      await withTlsBalancer(
        [replica?.port ?? 0],
        async (balancer) => {
          const plain = connect(balancer.port, '127.0.0.1').on('error', () => undefined);
          plain.write('PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n');
          const secure = connectTls({ socket: plain, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
          let text = '';
          secure.on('data', (bytes: Buffer) => {
            text += bytes.toString();
          });
          secure.write(get);
          await waitFor('an answer', () => text.endsWith('for 192.0.2.7'), { describe: () => text });
          secure.destroy();
          const http2 = ['-sSk', '--http2', '--haproxy-protocol', '-w', ' %{http_version}', `https://127.0.0.1:${balancer.port}/`];
          expect((await run('curl', http2)).stdout).toBe('for 127.0.0.1 2');
          const plainHttp = ['-sSI', '--haproxy-protocol', `http://127.0.0.1:${httpRedirectPort}/x`];
          // The balancer tries that port until it is free, independently of its endpoint.
          const redirected = await waitFor('a redirect', () =>
            run('curl', plainHttp).then(
              ({ stdout }) => stdout,
              () => undefined,
            ),
          );
          expect(redirected).toContain(`Location: https://127.0.0.1:${balancer.port}/x\r\n`);
          expect(await answer(httpRedirectPort, get)).toBe('reset');
        },
        { proxyProtocol: ['127.0.0.0/8'], httpRedirectPort },
      );
    });
  });
});
