import type { BalancerConfig, RequestQueueLimits } from '../../domain/balancer-link.ts';
import { fromZeroWaitSeconds, passSettings, replacementWaitSeconds } from '../../domain/load-balancer.ts';
import { widestBounds } from '../../domain/replica-schedule.ts';
import type { ServiceSpec } from '../../domain/task.ts';
import { tlsRules } from '../../domain/tls-rules.ts';
import type { ServicePaths } from '../../shared/paths.ts';
import type { ServiceRecord } from '../../domain/records.ts';

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
    tls:
      tls === undefined
        ? null
        : { keyFile: tls.keyfile, certFile: tls.certfile, ...(tls.clientCa !== undefined && { clientCaFile: tls.clientCa }) },
    tlsRules: tlsRules(tls ?? {}),
    protocol: spec.protocol,
    ...passSettings(loadBalancer),
    queue: queueLimits(spec),
    retryAfterSeconds,
    ...(spec.update.session !== undefined && { session: spec.update.session }),
  };
}

function queueLimits({ loadBalancer, replicaPolicy }: ServiceSpec): RequestQueueLimits {
  const { minReplicas, maxReplicas } = widestBounds(replicaPolicy);
  const fromZero = minReplicas === 0 && maxReplicas > 0;
  const { queueSize, queueBytes, queueTimeoutSeconds } = loadBalancer;
  const seconds = queueTimeoutSeconds ?? (fromZero ? fromZeroWaitSeconds : replacementWaitSeconds);
  return { maxRequests: queueSize, maxBytes: queueBytes, timeoutMs: seconds * 1_000, fromZero };
}
