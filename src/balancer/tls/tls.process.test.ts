import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { aBalancerReplica, balancerConfig, ControlLink, RunningBalancer, runToExit, withBalancer } from '../../../test/support/balancer.ts';
import { selfSigned } from '../../../test/support/certificate.ts';
import { withHttp2 } from '../../../test/support/http2.ts';
import { httpReplica, RawClient, withReplicas } from '../../../test/support/raw-http.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { withTlsBalancer, writeTlsFiles } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openingOf } from './negotiated-connection.ts';

const hello = (): ReturnType<typeof httpReplica> =>
  httpReplica((incoming, response) => {
    response.end(`hello ${String(incoming.headers['x-forwarded-proto'])}`);
  });

/** A request over HTTP/1.1 and TLS. */
function get(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, rejectUnauthorized: false, agent: false }, (response) => {
      response.setEncoding('utf8');
      let text = '';
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve(text));
    });
    call.on('error', reject);
    call.end();
  });
}

/** Ends a handshake; the connection, or the error's code. */
function handshake(port: number, options: ConnectionOptions): Promise<TLSSocket | string> {
  return new Promise((resolve) => {
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
    socket.on('secureConnect', () => resolve(socket));
    socket.on('error', (error) => resolve('code' in error ? String(error.code) : error.message));
  });
}

/** The certificate that the endpoint shows, as it is compared. */
async function shownBy(port: number): Promise<string> {
  const socket = await handshake(port, {});
  if (typeof socket === 'string') throw new Error(socket);
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test('HTTP/1.1 over TLS works, and the replica gets the scheme', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer) => {
      expect(await get(balancer.port)).toBe('hello https');
      const socket = await handshake(balancer.port, { ALPNProtocols: ['http/1.1'] });
      if (typeof socket === 'string') throw new Error(socket);
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      for (const count of [1, 2]) {
        socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
        await waitFor('an answer', () => text.split('hello https').length === count + 1, { everyMs: 5 });
      }
      socket.destroy();
    });
  });
});

test('a client without HTTP/2 and HTTP/1.1, or with TLS 1.1, fails the handshake', async () => {
  await withTlsBalancer([], async (balancer) => {
    expect(await handshake(balancer.port, { ALPNProtocols: ['smtp'] })).toMatch(/NO_APPLICATION_PROTOCOL/);
    expect(await handshake(balancer.port, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })).toMatch(
      /^ERR_SSL/,
    );
  });
});

test('TLS 1.2 needs forward secrecy and authenticated encryption', async () => {
  await withTlsBalancer([], async (balancer) => {
    const offer = (ciphers: string): Promise<TLSSocket | string> => handshake(balancer.port, { maxVersion: 'TLSv1.2', ciphers });
    for (const refused of ['AES128-GCM-SHA256', 'ECDHE-RSA-AES128-SHA256', 'ECDHE-ECDSA-AES128-SHA256', 'ECDHE-RSA-AES256-SHA'])
      expect(await offer(refused)).toMatch(/^ERR_SSL/);
    const secured = await offer('ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256');
    if (typeof secured === 'string') throw new Error(secured);
    secured.destroy();
  });
});

test('plain HTTP at the TLS port gets a short answer, and junk is closed', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer) => {
      const plain = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(await plain.closed()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*speaks TLS/);
      const junk = new RawClient(balancer.port).send('\x16\x03\x01\x00\x05hello, this is no handshake');
      await junk.closed();
      const gone = connectPlain(balancer.port, '127.0.0.1', () => gone.destroy());
      expect(await get(balancer.port)).toBe('hello https');
    });
  });
});

test('replaced files are loaded, and open connections continue', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer, url, dir) => {
      const replace = async (put: () => void): Promise<void> => {
        const before = await shownBy(balancer.port);
        put();
        await waitFor('the new certificate', async () => (await shownBy(balancer.port)) !== before, { everyMs: 200 });
      };
      await withHttp2(url, async (client) => {
        expect((await client.get('/')).body.toString()).toBe('hello https');
        await replace(() => writeTlsFiles(dir));
        await replace(() => {
          const { key, cert } = selfSigned();
          writeFileSync(join(dir, 'new.key'), key);
          writeFileSync(join(dir, 'new.crt'), cert);
          renameSync(join(dir, 'new.key'), join(dir, 'tls.key'));
          renameSync(join(dir, 'new.crt'), join(dir, 'tls.crt'));
        });
        expect((await client.get('/')).body.toString()).toBe('hello https');
        expect(balancer.output).not.toContain('PRIVATE KEY');
      });
    });
  });
});

test('replaced symbolic links are followed', async () => {
  await withTempHome(async (dir) => {
    const put = (version: string): void => {
      const { key, cert } = selfSigned();
      writeFileSync(join(dir, `${version}.key`), key);
      writeFileSync(join(dir, `${version}.crt`), cert);
    };
    put('1');
    put('2');
    symlinkSync('1.key', join(dir, 'live.key'));
    symlinkSync('1.crt', join(dir, 'live.crt'));
    const tls = { keyFile: join(dir, 'live.key'), certFile: join(dir, 'live.crt') };
    const balancer = await RunningBalancer.start(balancerConfig(dir, { tls }));
    try {
      const before = await shownBy(balancer.port);
      for (const name of ['live.key', 'live.crt']) {
        unlinkSync(join(dir, name));
        symlinkSync(name.replace('live', '2'), join(dir, name));
      }
      await waitFor('the new certificate', async () => (await shownBy(balancer.port)) !== before, { everyMs: 200 });
      expect(balancer.output).not.toContain('not in force');
    } finally {
      await balancer.stop();
    }
  });
});

test('invalid files change nothing, are reported without content, and load once valid', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer, _, dir) => {
      const before = await shownBy(balancer.port);
      const { key, cert } = selfSigned();
      writeFileSync(join(dir, 'tls.crt'), cert.slice(0, 100));
      await waitFor('the log to say so', () => balancer.output.includes('ends in the middle of a certificate'));
      writeFileSync(join(dir, 'tls.crt'), cert);
      await waitFor('the log to say that the key does not fit', () =>
        balancer.output.includes('is not the certificate of the key in keyfile'),
      );
      expect(await shownBy(balancer.port)).toBe(before);
      expect(await get(balancer.port)).toBe('hello https');
      writeFileSync(join(dir, 'tls.key'), key);
      await waitFor('the new certificate', async () => (await shownBy(balancer.port)) !== before, { everyMs: 200 });
      expect(balancer.output).not.toContain('BEGIN');
      expect(balancer.output).not.toContain(key.split('\n')[1] ?? 'x');
    });
  });
});

test('an expired certificate is not loaded', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer, _, dir) => {
      const before = await shownBy(balancer.port);
      const { key, cert } = selfSigned({ notAfter: Date.UTC(2020) });
      writeFileSync(join(dir, 'tls.key'), key);
      writeFileSync(join(dir, 'tls.crt'), cert);
      await waitFor('the log to say so', () => balancer.output.includes('is good no longer'));
      expect(await shownBy(balancer.port)).toBe(before);
    });
  });
});

test('a TLS client over the connection limit is counted without a response', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer(
      [replica?.port ?? 0],
      async (balancer) => {
        const first = await handshake(balancer.port, {});
        if (typeof first === 'string') throw new Error(first);
        expect(typeof (await handshake(balancer.port, {}))).toBe('string');
        expect((await balancer.accessLog(1))[0]).toMatchObject({ code: 'overloaded', status: 503, tls: true });
        first.destroy();
      },
      { maxConnections: 1 },
    );
  });
});

test('a balancer does not start with a mismatched key, and names the files', async () => {
  await withTempHome(async (dir) => {
    const tls = writeTlsFiles(dir);
    writeFileSync(tls.keyFile, selfSigned().key);
    const { code, output } = await runToExit(balancerConfig(dir, { tls }));
    expect(code).toBe(2);
    expect(output).toContain(tls.certFile);
    expect(output).toContain(tls.keyFile);
    expect(output).toContain('is not the certificate of the key in keyfile');
  });
});

test('a balancer does not start with mismatched key types or an empty file', async () => {
  await withTempHome(async (dir) => {
    const tls = writeTlsFiles(dir);
    writeFileSync(tls.certFile, selfSigned({ rsaBits: 2_048 }).cert);
    const { code, output } = await runToExit(balancerConfig(dir, { tls }));
    expect(code).toBe(2);
    expect(output).toContain('certifies a key of type rsa, and that key is of type ec');
    writeFileSync(tls.certFile, '');
    expect(await runToExit(balancerConfig(dir, { tls }))).toMatchObject({
      code: 2,
      output: expect.stringContaining(`${tls.certFile} is empty`),
    });
  });
});

test('a balancer that starts with an expired certificate serves and warns', async () => {
  await withTempHome(async (dir) => {
    const tls = writeTlsFiles(dir);
    const { key, cert } = selfSigned({ notAfter: Date.UTC(2020) });
    writeFileSync(tls.keyFile, key);
    writeFileSync(tls.certFile, cert);
    const balancer = await RunningBalancer.start(balancerConfig(dir, { tls }));
    try {
      expect(balancer.output).toContain('Clients will refuse the certificate of the endpoint');
      expect(await shownBy(balancer.port)).toMatch(/:/);
    } finally {
      await balancer.stop();
    }
  });
});

test('a new certificate for another key type changes nothing and is reported', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer(
      [replica?.port ?? 0],
      async (balancer, _, dir) => {
        const before = await shownBy(balancer.port);
        writeFileSync(join(dir, 'tls.crt'), selfSigned({ rsaBits: 2_048 }).cert);
        const [report] = await waitFor('the report', () => (balancer.link.of('tls').length > 0 ? balancer.link.of('tls') : undefined));
        expect(report?.problem).toContain(`${join(dir, 'tls.crt')} is not the certificate of the key in keyfile`);
        expect(await shownBy(balancer.port)).toBe(before);
        expect(await get(balancer.port)).toBe('hello https');
        const late = new ControlLink(balancer.config.controlSocket);
        await waitFor('hello with the problem', () => late.of('hello').some(({ tlsProblem }) => tlsProblem === report?.problem));
        late.close();
        writeTlsFiles(dir);
        await waitFor('the report of the new pair', () => balancer.link.of('tls').at(-1)?.problem === null);
        await waitFor('the new certificate', async () => (await shownBy(balancer.port)) !== before);
        expect(balancer.link.of('tls')).toHaveLength(2);
      },
      { threads: 2 },
    );
  });
});

test('many failed handshakes leave no state behind', async () => {
  await withReplicas([hello()], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer) => {
      const files = (): number =>
        execFileSync('ls', [`/proc/${balancer.pid}/fd`])
          .toString()
          .split('\n').length;
      expect(await get(balancer.port)).toBe('hello https');
      const before = files();
      for (let round = 0; round < 50; round += 1) {
        const client = new RawClient(balancer.port).send('\x16\x03\x01');
        await waitFor('the connection', () => !client.socket.connecting, { everyMs: 1 });
        client.destroy();
      }
      await waitFor('the sockets to be gone', () => files() <= before + 2);
      expect(await get(balancer.port)).toBe('hello https');
    });
  });
});

test('with h2c, a client may start with HTTP/2 or HTTP/1, byte by byte', async () => {
  await withReplicas([], async () => {
    await withBalancer(
      [],
      async (balancer) => {
        await withHttp2(balancer.url, async (client) => {
          expect((await client.get('/')).status).toBe(503);
        });
        const slow = new RawClient(balancer.port);
        for (const character of 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n') slow.send(character);
        expect(await slow.closed()).toMatch(/^HTTP\/1\.1 503 /);
        const odd = new RawClient(balancer.port).send('PRI * HTTP/1.1\r\nHost: x\r\n\r\n');
        expect(await odd.closed()).toMatch(/^HTTP\/1\.1 400 /);
        await balancer.link.setReplicas([aBalancerReplica(1)]);
      },
      { protocol: 'h2c' },
    );
  });
});

test('without h2c, a plain port refuses the HTTP/2 preface', async () => {
  await withBalancer([], async (balancer) => {
    const client = new RawClient(balancer.port).send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 /);
  });
});

test.each([
  ['', undefined],
  ['\x16', 'tls'],
  ['G', 'other'],
  ['P', undefined],
  ['PRI * HTTP/2.0\r', undefined],
  ['PRI * HTTP/2.0\r\n', 'http2'],
  ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n...', 'http2'],
  ['PRI * HTTP/2.1\r\n', 'other'],
  ['POST / HTTP/1.1', 'other'],
])('the first bytes %j are classified as %s', (bytes, opening) => {
  expect(openingOf(Buffer.from(bytes, 'latin1'))).toBe(opening);
});

test('only the balancer reads the key, and reports contain none of it', async () => {
  await withTlsBalancer([], async (balancer, _, dir) => {
    const key = readFileSync(join(dir, 'tls.key'), 'utf8').split('\n')[1] ?? '';
    expect(key.length).toBeGreaterThan(10);
    expect(balancer.output).not.toContain(key);
    expect(readFileSync(`/proc/${balancer.pid}/cmdline`, 'utf8')).not.toContain(key);
  });
});
