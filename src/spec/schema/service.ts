import { z } from 'zod';
import { canReplace, shareOf } from '../../domain/rollout.ts';
import { loadBalancerSettings, readLoadBalancer, type LoadBalancerSetting } from '../../domain/load-balancer.ts';
import { defaultUpdate, loadBalancingPolicies, replicaProtocols, spotPlacers, type UpdatePolicy } from '../../domain/task.ts';
import { isAddressRange } from '../../shared/address-range.ts';
import {
  anyMap,
  byteSizeBetween,
  defaulted,
  duration,
  field,
  port,
  reading,
  replicaCount,
  required,
  seconds,
  section,
  someSeconds,
  someText,
  type Reading,
  word,
  wholeNumber,
} from './kit.ts';

const probePath = z
  .string()
  .regex(/^\//, 'must start with "/"\nWrite for instance: /health')
  .regex(/^[!-"$-~]*$/, 'must have only visible ASCII characters, and no "#"\nWrite others percent-encoded, for instance a space as %20.');

/** Header names as HTTP allows them. Values have one line: a line break would start another header. */
const headers = z.record(
  z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'is not the name of an HTTP header'),
  z.string().regex(/^[\t -~\u00a0-\u00ff]*$/, 'must be one line of Latin-1 text'),
);

const jsonText = reading(z.string(), (text): Reading<string> => {
  try {
    JSON.parse(text);
    return { ok: text };
  } catch {
    return { problem: 'is not valid JSON\nWrite JSON text, or a map in YAML.' };
  }
});
const jsonMap = reading(anyMap, (value): Reading<string> => ({ ok: JSON.stringify(value) }));

const probe = section({
  path: required(
    probePath,
    'Path of the probe; starts with `/`. With `protocol: h2c`, `/grpc.health.v1.Health/Check` makes it the standard health check of gRPC.',
  ),
  post_data: field(z.union([jsonText, jsonMap]), 'JSON text or a map; when given, the probe is a POST with this body.'),
  headers: field(headers, 'Headers of the probe; values are text. `$NAME` of `envs` and `secrets` is put in.'),
  initial_delay_seconds: defaulted(seconds, 'How long a new replica may take to become ready, from its first failed probe.', 1200),
  timeout_seconds: defaulted(someSeconds, 'How long one probe may take; more than 0.', 15),
  endpoint_probe_interval_seconds: defaulted(someSeconds, 'Time between two probes of a replica; more than 0.', 10),
  consecutive_failure_threshold_timeout: defaulted(
    seconds,
    'How long all probes of a replica that was ready may fail before it is replaced, in seconds.',
    180,
  ),
});

/** `A100-80GB: 2.5`, `L4:2: 4`: requests per second for each kind of accelerator. */
const qpsByAccelerator = z.record(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*(:\d+)?$/, 'is not the name of an accelerator\nWrite for instance: A100-80GB: 2.5'),
  z.number().gt(0),
);

const replicaPolicy = section({
  min_replicas: required(replicaCount, 'Fewest replicas; 0 lets the service sleep.'),
  max_replicas: field(replicaCount, 'Most replicas; at least `min_replicas`. Needs `target_qps_per_replica` when it differs from it.', {
    words: '`min_replicas`',
  }),
  num_overprovision: defaulted(replicaCount, 'Replicas on top of what the load asks for.', 0),
  target_qps_per_replica: field(
    z.union([z.number().gt(0), qpsByAccelerator]),
    'Requests per second that one replica is to serve, more than 0; or a map from accelerator to that number. Needs `max_replicas`.',
  ),
  upscale_delay_seconds: defaulted(seconds, 'How long the load must ask for more replicas before they come.', 300),
  downscale_delay_seconds: defaulted(seconds, 'How long the load must ask for fewer replicas before they go.', 1200),
  dynamic_ondemand_fallback: defaulted(
    z.boolean(),
    'Put on-demand machines in for spot machines that are missing. Needs `use_spot: true`.',
    false,
  ),
  base_ondemand_fallback_replicas: defaulted(
    replicaCount,
    'Replicas that are always on demand; at most `min_replicas`. Needs `use_spot: true`.',
    0,
  ),
  spot_placer: field(
    word(spotPlacers),
    'How zones for spot machines are chosen: `dynamic_fallback` as in SkyServe; `hedge` by the history of the zones, with on-demand replicas and spares as they are worth it. Needs `use_spot: true`.',
  ),
});

/** The policy of a fixed number of replicas. */
export const fixedReplicas = (count: number): z.output<typeof replicaPolicy> => replicaPolicy.parse({ min_replicas: count });

const addressRange = z.string().refine(isAddressRange, 'is neither an address nor a range such as 10.0.0.0/8');

function balancerValue({ kind, min = 1, max = Number.MAX_SAFE_INTEGER }: LoadBalancerSetting): z.ZodType {
  switch (kind) {
    case 'port':
      return port;
    case 'count':
      return wholeNumber.min(min).max(max);
    case 'bytes':
      return byteSizeBetween(min, max);
    case 'seconds':
      return duration;
    case 'flag':
      return z.boolean();
    case 'address-ranges':
      return z.array(addressRange);
  }
}

const balancerFields = loadBalancerSettings.map(([name, setting]) => {
  const { doc, defaultWords: words, default: value } = setting;
  return [name, field(balancerValue(setting), doc, words === undefined ? value : { words })] as const;
});
const loadBalancer = section(Object.fromEntries(balancerFields)).transform(readLoadBalancer);

const surge = reading(z.union([z.int().min(0).max(10_000), z.string()]), (given): Reading<UpdatePolicy['surge']> => {
  if (typeof given === 'number') return { ok: given };
  const share = shareOf(given);
  return share === undefined ? { problem: 'is neither a number of replicas nor a share such as 25%' } : { ok: share };
});

const update = section({
  surge: defaulted(
    surge,
    'Replicas beyond the desired number during an update: a number, or a share of that number such as `25%`.',
    defaultUpdate.surge,
  ),
  max_unavailable: defaulted(
    replicaCount,
    'How many fewer replicas than desired may be ready because of an update.',
    defaultUpdate.maxUnavailable,
  ),
}).refine(
  ({ surge: extra, max_unavailable: maxUnavailable }) => canReplace({ surge: extra, maxUnavailable }),
  'sets both surge and max_unavailable to 0, so that no replica could be replaced\nSet one of them to 1 or more.',
);

const tls = section({
  keyfile: required(someText, 'Path of the private key (PEM) on this machine, relative to the file.'),
  certfile: required(someText, 'Path of the certificate chain (PEM) on this machine, relative to the file.'),
});

const pool = section({
  workers: field(replicaCount, 'A fixed number of workers.'),
  min_workers: field(replicaCount, 'Fewest workers.'),
  max_workers: field(replicaCount, 'Most workers.'),
  queue_length_threshold: field(wholeNumber.min(1), 'Pending jobs that ask for one more worker.', 1),
  upscale_delay_seconds: field(seconds, 'As in `replica_policy`.', 300),
  downscale_delay_seconds: field(seconds, 'As in `replica_policy`.', 1200),
});

/** The section `service`. */
export const serviceSection = section({
  readiness_probe: defaulted(
    z.union([probePath, probe]).transform((given) => (typeof given === 'string' ? probe.parse({ path: given }) : given)),
    'When a replica is ready: a path that answers 200, or details.',
    '/',
  ),
  replicas: field(replicaCount, 'A fixed number of replicas. Not together with `replica_policy`.', 1),
  workers: field(replicaCount, 'The same as `replicas`; only one of the two may be given.'),
  replica_policy: field(replicaPolicy, 'How the number of replicas follows the load.'),
  load_balancing_policy: field(
    word(loadBalancingPolicies),
    'How requests are spread over the replicas. Case does not count.',
    'least_load',
  ),
  ports: field(port, 'The port of a replica that requests go to.', { words: 'the only one of `resources.ports`' }),
  tls: field(
    tls,
    'Serve the endpoint over TLS, with HTTP/2 for clients that ask for it. Both files are read where they are, also when they change.',
  ),
  protocol: defaulted(
    word(replicaProtocols),
    'What the program speaks: `http` (HTTP/1.1), `h2c` (HTTP/2 without TLS, as gRPC servers do), or `auto` (HTTP/1.1, and h2c for gRPC requests where it is found). The probe speaks HTTP/2 with `h2c` alone.',
    'auto',
  ),
  load_balancer: field(loadBalancer, 'Settings of the endpoint.'),
  update: field(update, 'How `svc serve update` replaces replicas.'),
  graceful_termination: field(
    duration,
    'How long requests of a replica that goes away may take to end: seconds, or text such as `5m`.',
    60,
  ),
  graceful_drain_seconds: field(duration, 'The same as `graceful_termination`; only one of the two may be given.'),
  expose: defaulted(z.boolean(), 'Let the endpoint listen on all addresses of the machine, not only on this machine itself.', false),
  pool: field(pool, 'A pool of workers for jobs; see `pool` of the task.'),
});

/** The section `pool`. */
export const poolSection = pool;

export type ServiceFields = z.output<typeof serviceSection>;
