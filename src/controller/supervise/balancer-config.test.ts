import { expect, test } from 'vitest';
import { aService, aServiceSpec } from '../../../test/support/builders.ts';
import type { BalancerConfig } from '../../domain/balancer-link.ts';
import type { LoadBalancerSpec } from '../../domain/load-balancer.ts';
import type { ReplicaPolicy, ServiceSpec } from '../../domain/task.ts';
import { tlsSuites } from '../../domain/tls-rules.ts';
import { homePaths, servicePaths } from '../../shared/paths.ts';
import { balancerConfig } from './balancer-config.ts';

const files = servicePaths(homePaths('/home/me/.svc', 1_000), '0a1b2c3d');
const { loadBalancer, replicaPolicy } = aServiceSpec();

const configOf = (spec: Partial<ServiceSpec> = {}, cpus = 4): BalancerConfig => balancerConfig(aService(), aServiceSpec(spec), files, cpus);
const withBalancer = (change: Partial<LoadBalancerSpec>, cpus?: number): BalancerConfig =>
  configOf({ loadBalancer: { ...loadBalancer, ...change } }, cpus);
const withPolicy = (change: Partial<ReplicaPolicy>, balancer: Partial<LoadBalancerSpec> = {}): BalancerConfig =>
  configOf({ replicaPolicy: { ...replicaPolicy, ...change }, loadBalancer: { ...loadBalancer, ...balancer } });

test('a plain service has its name, address and files, and defaults for everything else', () => {
  expect(configOf()).toEqual({
    service: 'chat',
    host: '127.0.0.1',
    port: 30_001,
    threads: 2,
    policy: 'least_load',
    controlSocket: files.balancerSocket,
    lastReplicasFile: files.lastReplicas,
    accessLog: files.accessLog,
    metricsSocket: files.metricsSocket,
    accessLogAddresses: false,
    metricsPort: null,
    httpRedirectPort: null,
    tls: null,
    tlsRules: { minVersion: '1.2', ciphers: tlsSuites },
    protocol: 'auto',
    trustedProxies: [],
    proxyProtocol: [],
    allow: null,
    maxConnections: null,
    maxConnectionsPerReplica: 16_384,
    maxRequestLineBytes: 8_192,
    maxHeaderBytes: 32_768,
    maxHeaderCount: 100,
    firstByteTimeoutMs: 300_000,
    idleTimeoutMs: 300_000,
    maxBodyBytes: null,
    retryUnsafe: false,
    exposeReplica: false,
    keepAliveTimeoutMs: 75_000,
    queue: { maxRequests: 1_000, maxBytes: 64 * 2 ** 20, timeoutMs: 30_000, fromZero: false },
    retryAfterSeconds: 5,
  });
});

test.each([
  [1, 1],
  [2, 1],
  [3, 1],
  [4, 2],
  [64, 32],
])('with %d vCPUs the balancer has %d threads unless the task sets a number', (cpus, threads) => {
  expect(withBalancer({}, cpus).threads).toBe(threads);
  expect(withBalancer({ threads: 3 }, cpus).threads).toBe(3);
});

test('the configuration contains the original paths of the TLS files, and the rules for handshakes', () => {
  const tls = { keyfile: '/k.pem', certfile: '/c.pem', clientCa: '/ca.pem', minVersion: '1.3' } as const;
  expect(configOf({ tls, protocol: 'h2c' })).toMatchObject({
    tls: { keyFile: '/k.pem', certFile: '/c.pem', clientCaFile: '/ca.pem' },
    tlsRules: { minVersion: '1.3', ciphers: tlsSuites },
    protocol: 'h2c',
  });
});

test('every limit of the task file reaches the balancer, with seconds as ms', () => {
  const limits = {
    firstByteTimeoutSeconds: 1,
    idleTimeoutSeconds: 2,
    maxBodyBytes: 3,
    retryUnsafe: true,
    exposeReplica: true,
    maxRequestLineBytes: 400,
    maxHeaderBytes: 5_000,
    maxHeaderCount: 6,
    maxConnections: 7,
    keepAliveTimeoutSeconds: 8,
    queueSize: 9,
    queueBytes: 10,
    queueTimeoutSeconds: 11,
    trustedProxies: ['10.0.0.0/8'],
    allow: ['192.168.0.0/16'],
    accessLogAddresses: true,
    metricsPort: 9_090,
  };
  expect(withBalancer(limits)).toMatchObject({
    firstByteTimeoutMs: 1_000,
    idleTimeoutMs: 2_000,
    maxBodyBytes: 3,
    retryUnsafe: true,
    exposeReplica: true,
    maxRequestLineBytes: 400,
    maxHeaderBytes: 5_000,
    maxHeaderCount: 6,
    maxConnections: 7,
    keepAliveTimeoutMs: 8_000,
    queue: { maxRequests: 9, maxBytes: 10, timeoutMs: 11_000 },
    trustedProxies: ['10.0.0.0/8'],
    allow: ['192.168.0.0/16'],
    accessLogAddresses: true,
    metricsPort: 9_090,
  });
});

test('requests wait ten minutes when a service scales from zero, otherwise half a minute', () => {
  expect(withPolicy({ minReplicas: 0, maxReplicas: 2 }).queue).toMatchObject({ fromZero: true, timeoutMs: 600_000 });
  expect(withPolicy({ minReplicas: 1, maxReplicas: 2 }).queue).toMatchObject({ fromZero: false, timeoutMs: 30_000 });
  expect(withPolicy({ minReplicas: 0, maxReplicas: 0 }).queue).toMatchObject({ fromZero: false, timeoutMs: 30_000 });
  expect(withPolicy({ minReplicas: 0, maxReplicas: 2 }, { queueTimeoutSeconds: 0 }).queue.timeoutMs).toBe(0);
});
