import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { RawClient, rawExchange } from '../../../test/support/raw-http.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

/** The first answer at a port as soon as it listens. */
async function answer(port: number, request: string): Promise<string> {
  const attempt = async (): Promise<string | undefined> => {
    const client = new RawClient(port).send(request);
    client.socket.on('error', () => undefined);
    try {
      return (await client.closed()) || undefined;
    } finally {
      client.destroy();
    }
  };
  return waitFor('an answer', attempt);
}

test('requests are redirected to the endpoint, logged and counted; faults get 400', async () => {
  const httpRedirectPort = await freePort();
  await withTlsBalancer(
    [],
    async (balancer) => {
      const head = 'Host: localhost:8080\r\n';
      const moved = `HTTP/1.1 308 Permanent Redirect\r\n[^]*Location: https://localhost:${balancer.port}/a\\?b=c\r\n[^]*Connection: close\r\n\r\n`;
      expect(await answer(httpRedirectPort, `GET /a?b=c HTTP/1.1\r\n${head}\r\n`)).toMatch(new RegExp(`^${moved}\\{`));
      const body = 'Content-Length: 5\r\n\r\nhel';
      expect((await rawExchange(httpRedirectPort, `POST /a?b=c HTTP/1.1\r\n${head}${body}`)).received).toMatch(new RegExp(`^${moved}`));
      expect((await rawExchange(httpRedirectPort, `HEAD /a?b=c HTTP/1.1\r\n${head}\r\n`)).received).toMatch(new RegExp(`^${moved}$`));
      expect((await rawExchange(httpRedirectPort, 'GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n')).received).toMatch(/^HTTP\/1\.1 421 /);
      for (const bad of [
        'GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: x@localhost\r\n\r\n',
        'GET /\r\n',
      ])
        expect((await rawExchange(httpRedirectPort, bad)).received).toMatch(/^HTTP\/1\.1 400 /);
      const records = await balancer.accessLog(6);
      expect(records[0]).toMatchObject({ method: 'GET', path: '/a', status: 308, code: 'https_required', outcome: 'refused' });
      expect((await balancer.metrics()).get('svc_balancer_rejected_requests_total{reason="https_required"}')).toBe(3);
    },
    { httpRedirectPort, threads: 2 },
  );
});

test('the endpoint serves while the port is busy, and the port once it is free', async () => {
  const other = createServer();
  const httpRedirectPort = await freePort();
  await new Promise<void>((resolve) => {
    other.listen({ host: '127.0.0.1', port: httpRedirectPort }, resolve);
  });
  await withTlsBalancer(
    [],
    async (balancer) => {
      await waitFor('the log to say so', () => balancer.output.includes(`Port ${httpRedirectPort} (load_balancer.http_redirect_port)`));
      expect((await rawExchange(balancer.port, 'GET / HTTP/1.1\r\n\r\n')).received).toContain('speaks TLS');
      other.close();
      expect(await answer(httpRedirectPort, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')).toMatch(/^HTTP\/1\.1 308 /);
    },
    { httpRedirectPort },
  );
});
