import { connect, type ConnectionOptions } from 'node:tls';
import { expect, test } from 'vitest';
import { writeTlsFiles, withTlsBalancer } from '../../../test/support/tls-files.ts';
import { tlsRules } from '../../domain/tls-rules.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

/** Ends a handshake; its version and suite, or the error's code. */
function handshake(port: number, options: ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options }, () => {
      resolve(`${socket.getProtocol() ?? ''} ${socket.getCipher().name}`);
      socket.destroy();
    });
    socket.on('error', (error) => resolve('code' in error ? String(error.code) : error.message));
  });
}

test('with min_version 1.3 a client of TLS 1.2 fails the handshake, also after a renewal', async () => {
  await withTlsBalancer(
    [],
    async (balancer, _url, dir) => {
      expect(await handshake(balancer.port, { maxVersion: 'TLSv1.2' })).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
      expect(await handshake(balancer.port, {})).toMatch(/^TLSv1\.3 /);
      const before = balancer.link.of('tls').length;
      writeTlsFiles(dir);
      await waitFor('the new pair', () => balancer.link.of('tls').slice(before).at(-1)?.problem === null);
      expect(await handshake(balancer.port, { maxVersion: 'TLSv1.2' })).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
    },
    { tlsRules: tlsRules({ minVersion: '1.3' }) },
  );
});

test('only listed suites are used, the first one that the client has', async () => {
  const ciphers = ['TLS_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-AES128-GCM-SHA256'];
  await withTlsBalancer(
    [],
    async (balancer) => {
      const tls12 = (offered: string): Promise<string> => handshake(balancer.port, { maxVersion: 'TLSv1.2', ciphers: offered });
      expect(await handshake(balancer.port, {})).toBe('TLSv1.3 TLS_CHACHA20_POLY1305_SHA256');
      expect(await handshake(balancer.port, { ciphers: 'TLS_AES_128_GCM_SHA256', minVersion: 'TLSv1.3' })).toMatch(/^ERR_SSL/);
      expect(await tls12('ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384')).toBe('TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384');
      expect(await tls12('ECDHE-ECDSA-CHACHA20-POLY1305')).toMatch(/^ERR_SSL/);
    },
    { tlsRules: tlsRules({ ciphers }) },
  );
});
