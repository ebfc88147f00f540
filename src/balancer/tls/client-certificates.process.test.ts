import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type ConnectionOptions } from 'node:tls';
import { expect, test } from 'vitest';
import { aBalancerReplica, balancerConfig, RunningBalancer, runToExit } from '../../../test/support/balancer.ts';
import { selfSigned, type KeyAndCertificate } from '../../../test/support/certificate.ts';
import { withHttp2 } from '../../../test/support/http2.ts';
import { httpReplica, withReplicas } from '../../../test/support/raw-http.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { writeTlsFiles } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

/** Answers with the subject that the balancer reports. */
const echo = (): ReturnType<typeof httpReplica> =>
  httpReplica((incoming, response) => {
    response.end(`from ${String(incoming.headers['x-svc-client-subject'])}`);
  });

const alice = selfSigned({ subject: 'alice' });
const get = 'GET / HTTP/1.1\r\nHost: x\r\nX-Svc-Client-Subject: CN=root\r\nConnection: close\r\n\r\n';

/** A request over HTTP/1.1: the whole answer, empty if there was none, and what is known of the session. */
async function ask(
  port: number,
  options: ConnectionOptions,
): Promise<{ readonly text: string; readonly isReused: boolean; readonly session: Buffer | undefined }> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'], ...options });
  let text = '';
  let session: Buffer | undefined;
  let isClosed = false;
  let isReused = false;
  socket.on('secureConnect', () => {
    isReused = socket.isSessionReused();
    session ??= socket.getSession();
  });
  socket.on('session', (given: Buffer) => {
    session = given;
  });
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(get);
  await waitFor('the connection to be closed', () => isClosed, { describe: () => text });
  return { text, isReused, session };
}

async function withClientCa(ca: string, use: (balancer: RunningBalancer, dir: string) => Promise<void>): Promise<void> {
  await withReplicas([echo()], async (replica) => {
    await withTempHome(async (dir) => {
      const clientCaFile = join(dir, 'ca.pem');
      writeFileSync(clientCaFile, ca);
      const balancer = await RunningBalancer.start(balancerConfig(dir, { tls: { ...writeTlsFiles(dir), clientCaFile } }));
      try {
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0)]);
        await use(balancer, dir);
      } finally {
        await balancer.stop();
      }
    });
  });
}

const failures = async (balancer: RunningBalancer): Promise<number | undefined> =>
  (await balancer.metrics()).get('svc_balancer_tls_handshake_failures_total');

test.each(['TLSv1.2', 'TLSv1.3'] as const)('with %s a client needs a certificate, and the replica gets its subject', async (version) => {
  await withClientCa(alice.cert, async (balancer) => {
    const mallory = selfSigned({ subject: 'alice' });
    const only = { minVersion: version, maxVersion: version };
    expect((await ask(balancer.port, { ...only, ...alice })).text).toMatch(/from CN=alice$/);
    const refused: readonly Partial<KeyAndCertificate>[] = [{}, mallory, selfSigned({ subject: 'alice', notAfter: Date.UTC(2020) })];
    for (const pair of refused) expect((await ask(balancer.port, { ...only, ...pair })).text).toBe('');
    expect(await failures(balancer)).toBe(3);
    const lines = await balancer.accessLog(4);
    expect(lines[0]).toMatchObject({ outcome: 'ok' });
    for (const line of lines.slice(1)) expect(line).toMatchObject({ outcome: 'no_request', code: 'tls_handshake_failed' });
  });
});

test.each(['TLSv1.2', 'TLSv1.3'] as const)('with %s no session is resumed: each connection is checked', async (version) => {
  await withClientCa(alice.cert, async (balancer) => {
    const only = { minVersion: version, maxVersion: version };
    const first = await ask(balancer.port, { ...only, ...alice });
    const { session } = first;
    expect(session).toBeDefined();
    expect((await ask(balancer.port, { ...only, ...(session !== undefined && { session }) })).text).toBe('');
    const again = await ask(balancer.port, { ...only, ...alice, ...(session !== undefined && { session }) });
    expect(again.text).toMatch(/from CN=alice$/);
    expect(again.isReused).toBe(false);
  });
});

test('clients of an intermediate authority need its root, and others are refused', async () => {
  const root = { subject: 'root', ...selfSigned({ subject: 'root', isAuthority: true }) };
  const intermediate = { subject: 'intermediate', ...selfSigned({ subject: 'intermediate', isAuthority: true, issuer: root }) };
  const client = selfSigned({ subject: 'alice', issuer: intermediate });
  await withClientCa(intermediate.cert + root.cert, async (balancer, dir) => {
    expect((await ask(balancer.port, client)).text).toMatch(/from CN=alice$/);
    expect((await ask(balancer.port, selfSigned({ subject: 'alice' }))).text).toBe('');
    // Without the root, each handshake would fail, so the earlier file stays in force.
    writeFileSync(join(dir, 'ca.pem'), intermediate.cert);
    await waitFor('the log to say so', () => balancer.output.includes('lacks the certificate of the authority that issued its own'));
    expect((await ask(balancer.port, client)).text).toMatch(/from CN=alice$/);
  });
});

test('HTTP/2 has the same rule', async () => {
  await withClientCa(alice.cert, async (balancer) => {
    const url = `https://127.0.0.1:${balancer.port}`;
    await withHttp2(url, async (client) => expect((await client.get('/')).body.toString()).toBe('from CN=alice'), {
      ...alice,
      rejectUnauthorized: false,
    });
    expect(await withHttp2(url, (client) => client.get('/'))).toMatchObject({ status: 0 });
  });
});

test('replaced authorities are in force for new connections, and an empty file changes nothing', async () => {
  await withClientCa(alice.cert, async (balancer, dir) => {
    const bob = selfSigned({ subject: 'bob' });
    writeFileSync(join(dir, 'ca.pem'), '');
    await waitFor('the log to say so', () => balancer.output.includes(`The client_ca ${join(dir, 'ca.pem')} is empty`));
    expect((await ask(balancer.port, bob)).text).toBe('');
    writeFileSync(join(dir, 'ca.pem'), bob.cert);
    await waitFor('the new authority', async () => (await ask(balancer.port, bob)).text.endsWith('from CN=bob'), { everyMs: 200 });
    expect((await ask(balancer.port, alice)).text).toBe('');
  });
});

test('a balancer does not start with a file of no certificate', async () => {
  await withTempHome(async (dir) => {
    const clientCaFile = join(dir, 'ca.pem');
    writeFileSync(clientCaFile, 'none');
    const { code, output } = await runToExit(balancerConfig(dir, { tls: { ...writeTlsFiles(dir), clientCaFile } }));
    expect(code).toBe(2);
    expect(output).toContain(`The client_ca ${clientCaFile} is not a certificate in PEM`);
  });
});
