import { readLoadBalancer } from '../../domain/load-balancer.ts';
import {
  defaultDelays,
  defaultUpdate,
  type ReadinessProbe,
  type ReplicaPolicy,
  type ResourceAlternatives,
  type ScheduleEntry,
  type ServiceSpec,
  type TlsSpec,
  type UpdatePolicy,
} from '../../domain/task.ts';
import { expandPath, type PathBase } from '../paths.ts';
import { fixedReplicas, type ServiceFields } from '../schema/service.ts';
import { replicaPortOf } from './service-rules.ts';

/** The section `service` with every default filled in; only for a section that passed all rules. */
export function readService(fields: ServiceFields, resources: ResourceAlternatives, base: PathBase): ServiceSpec {
  return {
    readinessProbe: readProbe(fields.readiness_probe),
    replicaPolicy: readPolicy(fields),
    loadBalancingPolicy: fields.load_balancing_policy ?? 'least_load',
    replicaPort: replicaPortOf(fields, resources) ?? 0,
    tls: fields.tls && readTls(fields.tls, base),
    protocol: fields.protocol,
    gracefulTerminationSeconds: fields.graceful_termination ?? fields.graceful_drain_seconds ?? 60,
    expose: fields.expose,
    loadBalancer: fields.load_balancer ?? readLoadBalancer({}),
    ...(fields.max_hourly_cost !== undefined && { maxHourlyCost: fields.max_hourly_cost }),
    update: readUpdate(fields.update),
  };
}

function readTls(fields: NonNullable<ServiceFields['tls']>, base: PathBase): TlsSpec {
  const { keyfile, certfile, client_ca: clientCa, min_version: minVersion, ciphers } = fields;
  return {
    keyfile: expandPath(keyfile, base),
    certfile: expandPath(certfile, base),
    ...(clientCa !== undefined && { clientCa: expandPath(clientCa, base) }),
    ...(minVersion !== undefined && { minVersion }),
    ...(ciphers !== undefined && { ciphers }),
  };
}

function readUpdate(fields: ServiceFields['update']): UpdatePolicy {
  if (fields === undefined) return defaultUpdate;
  const { mode, surge, max_unavailable: maxUnavailable, steps, bake_seconds: bakeSeconds, session } = fields;
  return { mode, surge, maxUnavailable, steps, bakeSeconds, ...(session !== undefined && { session }) };
}

function readProbe(fields: ServiceFields['readiness_probe']): ReadinessProbe {
  return {
    path: fields.path,
    headers: fields.headers ?? {},
    postData: fields.post_data,
    initialDelaySeconds: fields.initial_delay_seconds,
    timeoutSeconds: fields.timeout_seconds,
    intervalSeconds: fields.endpoint_probe_interval_seconds,
    failureThresholdSeconds: fields.consecutive_failure_threshold_timeout,
  };
}

function readPolicy(fields: ServiceFields): ReplicaPolicy {
  const policy = fields.replica_policy ?? fixedReplicas(fields.replicas ?? fields.workers ?? 1);
  const autoscaler = policy.autoscaler ?? 'request_rate';
  const {
    target_ongoing_requests_per_replica: ongoing,
    target_ttfb_seconds: ttfb,
    metrics_path: metricsPath,
    scale_to_zero: scaleToZero,
    schedule,
    wake,
    early_replacement: earlyReplacement,
  } = policy;
  const delays = defaultDelays[autoscaler];
  return {
    ...(policy.autoscaler !== undefined && { autoscaler }),
    ...(ongoing !== undefined && { targetOngoingRequestsPerReplica: ongoing }),
    ...(ttfb !== undefined && { targetTtfbSeconds: ttfb }),
    ...(metricsPath !== undefined && { metricsPath }),
    ...(scaleToZero !== undefined && { scaleToZero }),
    ...(schedule !== undefined && { schedule: schedule.map(readScheduleEntry) }),
    ...(wake !== undefined && { wake }),
    ...(earlyReplacement !== undefined && { earlyReplacement }),
    minReplicas: policy.min_replicas,
    maxReplicas: policy.max_replicas ?? policy.min_replicas,
    numOverprovision: policy.num_overprovision,
    targetQpsPerReplica: policy.target_qps_per_replica,
    upscaleDelaySeconds: policy.upscale_delay_seconds ?? delays.up,
    downscaleDelaySeconds: policy.downscale_delay_seconds ?? delays.down,
    dynamicOndemandFallback: policy.dynamic_ondemand_fallback,
    baseOndemandFallbackReplicas: policy.base_ondemand_fallback_replicas,
    spotPlacer: policy.spot_placer,
  };
}

function readScheduleEntry(entry: ScheduleEntryFields): ScheduleEntry {
  const { cron, timezone, min_replicas: minReplicas, max_replicas: maxReplicas = minReplicas } = entry;
  return { cron, timezone, minReplicas, maxReplicas };
}

type ScheduleEntryFields = NonNullable<NonNullable<ServiceFields['replica_policy']>['schedule']>[number];
