import type { BalancerConfig, RequestQueueLimits } from '../../domain/balancer-link.ts';
import type { ServiceSpec } from '../../domain/task.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import type { ServiceRecord } from '../../domain/records.ts';

/**
 * How long a request waits for the first replica of a service scaled to zero, ms. Finding a machine and loading a model
 * can take minutes.
 */
const fromZeroWaitMs = 600_000;

/**
 * How long a request waits after the last replica is lost, ms. A replacement on an existing machine takes a few
 * seconds. Clients rarely time out sooner than this.
 */
const replacementWaitMs = 30_000;

/** Value of `Retry-After` while no replica is ready, s. */
const retryAfterSeconds = 5;

const cpusPerThread = 2;

/** Default number of balancer threads when the task file sets none. */
export function defaultThreads(cpus: number): number {
  return Math.max(1, Math.floor(cpus / cpusPerThread));
}

/** Startup configuration of a service's balancer. `cpus` of this machine sets the default number of threads. Pure. */
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
