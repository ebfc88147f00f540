import { grpcHealthPath } from '../../domain/replica/probe.ts';
import type { ResourceAlternatives, Resources } from '../../domain/task.ts';
import { tlsRules, versionWithoutSuite } from '../../domain/tls-rules.ts';
import type { Report } from '../report.ts';
import type { ServiceFields } from '../schema/service.ts';
import { nodeAt, type Path, type YamlNode } from '../yaml/node.ts';

const service = (...path: Path): Path => ['service', ...path];
const policyPath = (...path: Path): Path => service('replica_policy', ...path);

/** Checks rules over several fields of `service`. `fields` may lack refused parts; the document has all given ones. */
export function checkService(fields: ServiceFields, root: YamlNode, report: Report): void {
  const has = (...path: Path): boolean => nodeAt(root, path) !== undefined;
  for (const [one, other, hint] of exclusive) {
    if (has(...service(one)) && has(...service(other))) report.atKey(service(other), `${one} and ${other} cannot both be given`, hint);
  }
  checkPolicy(fields, has, report);
  checkEndpointPorts(fields, report);
  checkGrpcProbe(fields, root, report);
  checkCiphers(fields, report);
}

function checkCiphers({ tls }: ServiceFields, report: Report): void {
  if (tls?.ciphers === undefined) return;
  const rules = tlsRules({ minVersion: tls.min_version ?? '1.2', ciphers: tls.ciphers });
  const version = versionWithoutSuite(rules);
  if (version === undefined) return;
  const remedy =
    version === '1.2'
      ? "Set min_version: '1.3', or add for instance ECDHE-RSA-AES128-GCM-SHA256"
      : 'Add for instance TLS_AES_128_GCM_SHA256';
  report.at(service('tls', 'ciphers'), `has no suite of TLS ${version}, which clients may use`, `${remedy}.`);
}

function checkEndpointPorts({ load_balancer: balancer, tls }: ServiceFields, report: Report): void {
  if (balancer === undefined) return;
  const { port, metricsPort, httpRedirectPort } = balancer;
  if (metricsPort !== undefined && metricsPort === port)
    report.at(service('load_balancer', 'metrics_port'), 'is the port of the endpoint', 'Choose another port for the metrics.');
  if (httpRedirectPort === undefined) return;
  const at = service('load_balancer', 'http_redirect_port');
  if (tls === undefined) report.at(at, 'needs tls, to which it leads', 'Add tls to the service, or leave it out.');
  else if (httpRedirectPort === port || httpRedirectPort === metricsPort)
    report.at(at, `is the port of the ${httpRedirectPort === port ? 'endpoint' : 'metrics'} too`, 'Choose another port.');
}

/** gRPC health checks use a request of their own, over HTTP/2 only. */
function checkGrpcProbe({ readiness_probe: probe, protocol }: ServiceFields, root: YamlNode, report: Report): void {
  const path = typeof probe === 'object' ? probe.path : probe;
  if (path !== grpcHealthPath) return;
  if ((protocol ?? 'auto') !== 'h2c') {
    const fieldPath = nodeAt(root, service('readiness_probe', 'path')) === undefined ? ['readiness_probe'] : ['readiness_probe', 'path'];
    report.at(service(...fieldPath), 'the health check of gRPC needs a service that speaks HTTP/2', 'Add to the service: protocol: h2c');
  }
  if (typeof probe === 'object' && probe.post_data !== undefined) {
    const hint = 'Remove post_data; the health check of gRPC asks for the whole server.';
    report.at(service('readiness_probe', 'post_data'), 'is not for the health check of gRPC', hint);
  }
}

const twoNames = 'They are two names of one field; keep one.';
const exclusive = [
  ['replicas', 'replica_policy', 'Use replicas for a fixed number, or replica_policy to follow the load.'],
  ['workers', 'replica_policy', 'Use workers for a fixed number, or replica_policy to follow the load.'],
  ['replicas', 'workers', twoNames],
  ['graceful_termination', 'graceful_drain_seconds', twoNames],
] as const;

function checkPolicy(fields: ServiceFields, has: (...path: Path) => boolean, report: Report): void {
  const policy = fields.replica_policy;
  if (policy === undefined) return;
  const { min_replicas: min, max_replicas: max, base_ondemand_fallback_replicas: base } = policy;
  const targets = ['target_qps_per_replica', 'target_ongoing_requests_per_replica'].filter((name) => has(...policyPath(name)));
  const hasTarget = targets.length > 0;
  const say = (name: string): string => `${name} (${report.textAt(policyPath(name)).slice(1, -1)})`;
  if (max !== undefined && max < min) {
    report.at(policyPath('max_replicas'), `${say('max_replicas')} must not be less than ${say('min_replicas')}`);
  } else if (max !== undefined && max !== min && !hasTarget) {
    const message = `${say('min_replicas')} and ${say('max_replicas')} differ, and there is no ${targetNameOf(policy)} to choose between them`;
    report.at(policyPath('max_replicas'), message, `Add ${targetNameOf(policy)}, for instance 2.5, or make both equal.`);
  }
  if (!has(...policyPath('max_replicas'))) {
    const hint = 'Add max_replicas: the most replicas you want to pay for.';
    for (const name of targets.slice(0, 1)) report.atKey(policyPath(name), 'needs max_replicas beside it', hint);
  }
  checkAutoscaler(policy, has, report);
  checkSchedule(policy, hasTarget, report);
  checkSleep(policy, fields, report);
  if (base !== undefined && base > min) {
    const message = `${say('base_ondemand_fallback_replicas')} must not be more than ${say('min_replicas')}`;
    report.at(policyPath('base_ondemand_fallback_replicas'), message, 'Raise min_replicas, or lower it.');
  }
  checkTargetForm(fields, has, report);
}

type PolicyFields = NonNullable<ServiceFields['replica_policy']>;

const targetNameOf = ({ autoscaler }: PolicyFields): string =>
  autoscaler === 'concurrency' ? 'target_ongoing_requests_per_replica' : 'target_qps_per_replica';

/** Each autoscaler has its target, and fields of the others would be ignored. */
function checkAutoscaler(policy: PolicyFields, has: (...path: Path) => boolean, report: Report): void {
  // A given value that was refused has its own problem already.
  const autoscaler = policy.autoscaler ?? (has(...policyPath('autoscaler')) ? undefined : 'request_rate');
  if (autoscaler === undefined) return;
  const others = [
    ['target_qps_per_replica', ['request_rate', 'forecast']],
    ['target_ongoing_requests_per_replica', ['concurrency', 'forecast']],
    ['target_ttfb_seconds', ['forecast']],
    ['metrics_path', ['concurrency', 'forecast']],
    ['upscale_delay_seconds', ['request_rate', 'concurrency']],
    ['downscale_delay_seconds', ['request_rate', 'concurrency']],
  ] as const;
  for (const [name, users] of others) {
    if (!has(...policyPath(name)) || users.some((user) => user === autoscaler)) continue;
    report.atKey(
      policyPath(name),
      `${name} is not used by autoscaler: ${autoscaler}`,
      `Remove it, or write autoscaler: ${users.join(' or ')}.`,
    );
  }
  const target = targetNameOf(policy);
  const isAsked = has(...policyPath('autoscaler')) && autoscaler !== 'request_rate';
  if (isAsked && !has(...policyPath(target))) report.at(policyPath('autoscaler'), `needs ${target}`, `Add ${target}, for instance 2.5.`);
  if (autoscaler === 'forecast' && typeof policy.target_qps_per_replica === 'object') {
    const hint = 'Write one number, or autoscaler: request_rate.';
    report.at(policyPath('target_qps_per_replica'), 'the forecast has one target for all replicas', hint);
  }
}

function checkSchedule({ schedule = [], ...policy }: PolicyFields, hasTarget: boolean, report: Report): void {
  for (const [index, { min_replicas: min, max_replicas: max = min }] of schedule.entries()) {
    const path = policyPath('schedule', index, 'max_replicas');
    if (max < min) report.at(path, `max_replicas (${max}) must not be less than min_replicas (${min})`);
    else if (max !== min && !hasTarget) {
      const message = `min_replicas (${min}) and max_replicas (${max}) differ, and there is no ${targetNameOf(policy)} to choose between them`;
      report.at(path, message, `Add ${targetNameOf(policy)} to replica_policy, or make both equal.`);
    }
  }
}

/** An engine sleeps only in a service that may have no replica. The request for it uses HTTP/1.1. */
function checkSleep(
  { scale_to_zero: action, min_replicas: min, schedule = [] }: PolicyFields,
  { protocol }: ServiceFields,
  report: Report,
): void {
  if (action !== 'sleep') return;
  const path = policyPath('scale_to_zero');
  if (min > 0 && schedule.every(({ min_replicas: least }) => least > 0))
    report.at(path, `never applies, because min_replicas is ${min}`, 'Write min_replicas: 0, or remove scale_to_zero.');
  if (protocol === 'h2c') report.at(path, 'needs a program that speaks HTTP/1.1', 'Remove protocol: h2c, or scale_to_zero.');
}

/** A target per accelerator requires the policy that knows accelerators, and the reverse. */
function checkTargetForm(fields: ServiceFields, has: (...path: Path) => boolean, report: Report): void {
  const target = fields.replica_policy?.target_qps_per_replica;
  const balancing = fields.load_balancing_policy ?? (has(...service('load_balancing_policy')) ? undefined : 'least_load');
  if (target === undefined || balancing === undefined) return;
  const path = policyPath('target_qps_per_replica');
  if (typeof target === 'object') {
    if (Object.keys(target).length === 0) report.at(path, 'must not be empty', 'Write for instance: {L4: 2.5, A100: 10}');
    if (balancing !== 'instance_aware_least_load') {
      report.at(path, 'a target for each accelerator needs load_balancing_policy: instance_aware_least_load');
    }
  } else if (balancing === 'instance_aware_least_load') {
    const message = 'instance_aware_least_load needs a target_qps_per_replica for each accelerator';
    report.at(service('load_balancing_policy'), message, 'Write for instance: target_qps_per_replica: {L4: 2.5, A100: 10}');
  }
}

/** Checks rules between `service` and valid `resources`. */
export function checkServiceResources(fields: ServiceFields, resources: ResourceAlternatives, root: YamlNode, report: Report): void {
  const { choices } = resources;
  checkSpot(fields, choices, report);
  if (choices.some((choice) => choice.otherFields.includes('job_recovery'))) {
    const message = 'not for services, which replace their replicas by themselves';
    report.at(nodeAt(root, ['resources', 'job_recovery']) ? ['resources', 'job_recovery'] : ['resources'], message, 'Remove job_recovery.');
  }
  // A port that was given and refused has its own problem already.
  if (fields.ports !== undefined || nodeAt(root, service('ports')) === undefined) checkPort(fields, choices, report);
}

function checkSpot(fields: ServiceFields, choices: readonly Resources[], report: Report): void {
  const spot = choices.filter((choice) => choice.useSpot);
  const policy = fields.replica_policy;
  const needing = [
    ...(policy?.dynamic_ondemand_fallback === true ? ['dynamic_ondemand_fallback'] : []),
    ...((policy?.base_ondemand_fallback_replicas ?? 0) > 0 ? ['base_ondemand_fallback_replicas'] : []),
    ...(policy?.spot_placer === undefined ? [] : ['spot_placer']),
  ];
  if (spot.length === 0) {
    for (const name of needing) report.at(policyPath(name), 'is for spot machines only', 'Add use_spot: true to resources, or remove it.');
  }
  const kinds = new Set(
    spot.map((choice) => JSON.stringify({ ...choice, cloud: undefined, region: undefined, zone: undefined, ports: [] })),
  );
  if (policy?.spot_placer !== undefined && kinds.size > 1) {
    const message = 'with a spot placer the spot alternatives in resources may differ in their location only';
    report.at(policyPath('spot_placer'), message, 'Keep one kind of machine, or remove spot_placer.');
  }
}

function checkPort(fields: ServiceFields, choices: readonly Resources[], report: Report): void {
  if (fields.ports !== undefined) {
    const { ports } = fields;
    const closed = choices.filter((choice) => choice.ports.length > 0 && !choice.ports.includes(ports));
    if (closed.length === 0) return;
    const all = closed.length === choices.length ? '' : 'in all alternatives ';
    report.at(
      service('ports'),
      `the port is not among resources.ports ${all}`.trimEnd(),
      'Add it to resources.ports, or leave resources.ports out.',
    );
    return;
  }
  const distinct = new Set(choices.flatMap((choice) => choice.ports));
  if (distinct.size === 0) {
    const hint = 'Add the port on which the program answers, for instance: resources: {ports: 8080}, or service: {ports: 8080}.';
    report.atKey(service(), 'the service has no port', hint);
  } else if (distinct.size > 1) {
    const hint = 'Add the main port to the service, for instance: service: {ports: 8080}.';
    const isSame = choices.every((choice) => choice.ports.length === distinct.size);
    const reason = isSame ? 'several ports are open' : 'the alternatives open different ports';
    report.at(['resources'], `${reason}, and service.ports does not say which one gets the requests`, hint);
  } else if (choices.some((choice) => choice.ports.length === 0)) {
    report.at(['resources'], 'not all alternatives open the port of the service', 'Write ports once, outside any_of or ordered.');
  }
}

/** The port of a replica that requests go to. */
export function replicaPortOf(fields: ServiceFields, resources: ResourceAlternatives): number | undefined {
  return fields.ports ?? resources.choices[0]?.ports[0];
}
