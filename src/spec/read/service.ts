import { readLoadBalancer } from '../../domain/load-balancer.ts';
import type { ReadinessProbe, ReplicaPolicy, ResourceAlternatives, ServiceSpec } from '../../domain/task.ts';
import { expandPath, type PathBase } from '../paths.ts';
import type { ServiceFields } from '../schema/service.ts';
import { replicaPortOf } from './service-rules.ts';

/** The section `service` with every default filled in; only for a section that passed all rules. */
export function readService(fields: ServiceFields, resources: ResourceAlternatives, base: PathBase): ServiceSpec {
  return {
    readinessProbe: readProbe(fields.readiness_probe),
    replicaPolicy: readPolicy(fields),
    loadBalancingPolicy: fields.load_balancing_policy ?? 'least_load',
    replicaPort: replicaPortOf(fields, resources) ?? 0,
    tls: fields.tls && { keyfile: expandPath(fields.tls.keyfile, base), certfile: expandPath(fields.tls.certfile, base) },
    protocol: fields.protocol ?? 'auto',
    gracefulTerminationSeconds: fields.graceful_termination ?? fields.graceful_drain_seconds ?? 60,
    expose: fields.expose ?? false,
    loadBalancer: fields.load_balancer ?? readLoadBalancer({}),
  };
}

function readProbe(given: ServiceFields['readiness_probe']): ReadinessProbe {
  const fields = typeof given === 'object' ? given : { path: given ?? '/' };
  return {
    path: fields.path,
    headers: fields.headers ?? {},
    postData: fields.post_data,
    initialDelaySeconds: fields.initial_delay_seconds ?? 1200,
    timeoutSeconds: fields.timeout_seconds ?? 15,
    intervalSeconds: fields.endpoint_probe_interval_seconds ?? 10,
    failureThresholdSeconds: fields.consecutive_failure_threshold_timeout ?? 180,
  };
}

function readPolicy(fields: ServiceFields): ReplicaPolicy {
  const policy = fields.replica_policy;
  const minReplicas = policy?.min_replicas ?? fields.replicas ?? fields.workers ?? 1;
  return {
    minReplicas,
    maxReplicas: policy?.max_replicas ?? minReplicas,
    numOverprovision: policy?.num_overprovision ?? 0,
    targetQpsPerReplica: policy?.target_qps_per_replica,
    upscaleDelaySeconds: policy?.upscale_delay_seconds ?? 300,
    downscaleDelaySeconds: policy?.downscale_delay_seconds ?? 1200,
    dynamicOndemandFallback: policy?.dynamic_ondemand_fallback ?? false,
    baseOndemandFallbackReplicas: policy?.base_ondemand_fallback_replicas ?? 0,
    spotPlacer: policy?.spot_placer,
  };
}
