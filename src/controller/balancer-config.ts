import type { BalancerConfig, RequestQueueLimits } from '../domain/balancer-link.ts';
import type { ServiceSpec } from '../domain/task.ts';
import type { ServicePaths } from '../shared/paths.ts';
import type { ServiceRecord } from '../store/records.ts';

/** How long a request waits for the first replica of a service that sleeps, ms: a machine may have to be found, and a model be loaded. */
const fromZeroWaitMs = 600_000;

/**
 * How long a request waits when the last replica is lost, ms: a replacement on a machine that is there takes a second or a few, and clients rarely
 * wait for less than this.
 */
const replacementWaitMs = 30_000;

/** What `Retry-After` says while nothing is ready, s. */
const retryAfterSeconds = 5;

const cpusPerThread = 2;

/** Threads of a balancer where the file does not say how many. */
export function defaultThreads(cpus: number): number {
  return Math.max(1, Math.floor(cpus / cpusPerThread));
}

/** What the balancer of a service is started with. `cpus`: of this machine, for the default number of threads. Pure. */
export function balancerConfig(service: ServiceRecord, spec: ServiceSpec, files: ServicePaths, cpus: number): BalancerConfig {
  const { loadBalancer, tls } = spec;
  return {
    service: service.name,
    host: service.host,
    port: service.port,
    threads: loadBalancer.threads ?? defaultThreads(cpus),
    policy: spec.loadBalancingPolicy,
    controlSocket: files.balancerSocket,
    lastReplicasFile: files.lastReplicas,
    accessLog: files.accessLog,
    metricsSocket: files.metricsSocket,
    metricsPort: loadBalancer.metricsPort ?? null,
    tls: tls === undefined ? null : { keyFile: tls.keyfile, certFile: tls.certfile },
    protocol: spec.protocol,
    trustedProxies: loadBalancer.trustedProxies,
    maxConnections: loadBalancer.maxConnections ?? null,
    maxRequestLineBytes: loadBalancer.maxRequestLineBytes,
    maxHeaderBytes: loadBalancer.maxHeaderBytes,
    maxHeaderCount: loadBalancer.maxHeaderCount,
    firstByteTimeoutMs: loadBalancer.firstByteTimeoutSeconds * 1_000,
    idleTimeoutMs: loadBalancer.idleTimeoutSeconds * 1_000,
    maxBodyBytes: loadBalancer.maxBodyBytes ?? null,
    retryUnsafe: loadBalancer.retryUnsafe,
    exposeReplica: loadBalancer.exposeReplica,
    keepAliveTimeoutMs: loadBalancer.keepAliveTimeoutSeconds * 1_000,
    queue: queueLimits(spec),
    retryAfterSeconds,
  };
}

function queueLimits({ loadBalancer, replicaPolicy }: ServiceSpec): RequestQueueLimits {
  const fromZero = replicaPolicy.minReplicas === 0 && replicaPolicy.maxReplicas > 0;
  const { queueSize, queueBytes, queueTimeoutSeconds } = loadBalancer;
  const defaultMs = fromZero ? fromZeroWaitMs : replacementWaitMs;
  const timeoutMs = queueTimeoutSeconds === undefined ? defaultMs : queueTimeoutSeconds * 1_000;
  return { maxRequests: queueSize, maxBytes: queueBytes, timeoutMs, fromZero };
}
