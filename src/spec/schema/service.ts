import { z } from 'zod';
import { canReplace, shareOf } from '../../domain/rollout.ts';
import { loadBalancerSettings, readLoadBalancer, type LoadBalancerSetting } from '../../domain/load-balancer.ts';
import { isTimezone, parseCron } from '../../domain/cron.ts';
import {
  autoscalers,
  defaultUpdate,
  loadBalancingPolicies,
  replicaProtocols,
  spotPlacers,
  wakes,
  zeroActions,
  type SessionKey,
  updateModes,
  type UpdatePolicy,
} from '../../domain/task.ts';
import { tlsSuites, tlsVersions, type TlsVersion } from '../../domain/tls-rules.ts';
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
    'How long all probes of a replica that was ready may fail before it ends, in seconds. It ends sooner when the one that `early_replacement` launches is ready.',
    180,
  ),
});

/** `A100-80GB: 2.5`, `L4:2: 4`: requests per second for each kind of accelerator. */
const qpsByAccelerator = z.record(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*(:\d+)?$/, 'is not the name of an accelerator\nWrite for instance: A100-80GB: 2.5'),
  z.number().gt(0),
);

const cron = reading(z.string(), (text): Reading<string> => {
  const parsed = parseCron(text);
  return 'problem' in parsed ? { problem: `${parsed.problem}\nWrite for instance: 0 8 * * mon-fri` } : { ok: text };
});

const timezone = reading(z.string(), (name): Reading<string> => {
  return isTimezone(name) ? { ok: name } : { problem: 'is not the name of a time zone\nWrite for instance: Europe/Berlin' };
});

/** One entry of `schedule`. */
const scheduleEntry = section({
  cron: required(cron, 'The moments from which the bounds hold: minute, hour, day of the month, month, day of the week.'),
  timezone: defaulted(timezone, 'The time zone of `cron`, such as `Europe/Berlin`.', 'UTC'),
  min_replicas: required(replicaCount, 'Fewest replicas from then on.'),
  max_replicas: field(replicaCount, 'Most replicas from then on.', { words: '`min_replicas`' }),
});

const replicaPolicy = section({
  min_replicas: required(replicaCount, 'Fewest replicas; 0 lets the service sleep.'),
  max_replicas: field(replicaCount, 'Most replicas; at least `min_replicas`. Needs a target when it differs from it.', {
    words: '`min_replicas`',
  }),
  num_overprovision: defaulted(replicaCount, 'Replicas on top of what the load asks for.', 0),
  autoscaler: field(
    word(autoscalers),
    'What the number of replicas follows: the request rate of the last minute (`request_rate`), requests in flight and queued (`concurrency`), or the peaks to expect while a replica starts (`forecast`).',
    'request_rate',
  ),
  target_qps_per_replica: field(
    z.union([z.number().gt(0), qpsByAccelerator]),
    'Requests per second that one replica is to serve, more than 0; or a map from accelerator to that number. Needs `max_replicas`. `forecast` takes it as 70 % of what a replica can serve.',
  ),
  target_ongoing_requests_per_replica: field(
    z.number().gt(0),
    'Requests in flight or queued for each replica, more than 0. For `autoscaler: concurrency`; with `forecast`, requests above it count as queued.',
  ),
  target_ttfb_seconds: field(
    someSeconds,
    'How long a request may wait for its first byte before `forecast` counts it as late; a shorter time needs more replicas.',
    5,
  ),
  metrics_path: field(
    probePath,
    'Path of the Prometheus metrics of vLLM, SGLang or TGI, such as `/metrics`. `concurrency` and `forecast` then know when the engines are saturated.',
  ),
  upscale_delay_seconds: field(seconds, 'How long the load must ask for more replicas before they come.', {
    words: '300; with `concurrency` 0',
  }),
  downscale_delay_seconds: field(seconds, 'How long the load must ask for fewer replicas before they go.', {
    words: '1200; with `concurrency` 300',
  }),
  schedule: field(
    z.array(scheduleEntry).max(100),
    'Bounds by time: each entry replaces `min_replicas` and `max_replicas` from its moments on, until the next moment of any entry.',
  ),
  scale_to_zero: field(
    word(zeroActions),
    "What happens to the last replica when `min_replicas` is 0 and no replica is needed: it ends (`terminate`), or its engine sleeps and keeps its machine (`sleep`, by vLLM's `/sleep` and `/wake_up`).",
    'terminate',
  ),
  wake: field(
    word(wakes),
    'What decides the location while requests wait and no replica is ready: the price (`cheapest`), or the expected time until a replica is ready and then the price (`fastest`).',
    'cheapest',
  ),
  early_replacement: field(
    z.boolean(),
    'Launch another replica when the probes of one that was ready have failed for 18 s, or all its requests have hung or broken off for 60 s, before it ends; the other one costs a machine meanwhile.',
    true,
  ),
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
      return z.array(addressRange).min(min);
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

const sessionName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'is not the name of a cookie or header');

const session = section({
  cookie: field(sessionName, 'The cookie whose value names the session.'),
  header: field(sessionName, 'The header whose value names the session.'),
}).transform(({ cookie, header }, context): SessionKey => {
  if (cookie !== undefined && header === undefined) return { cookie };
  if (header !== undefined && cookie === undefined) return { header };
  context.addIssue({ code: 'custom', message: 'needs either cookie or header\nWrite for instance: cookie: session' });
  return z.NEVER;
});

const steps = z
  .array(z.int().min(1).max(99))
  .min(1)
  .max(20)
  .refine(
    (shares) => shares.every((share, index) => share > (shares[index - 1] ?? 0)),
    'is not ascending\nWrite shares from small to large, such as [5, 25, 50]. The rest follows after the last one.',
  );

const update = section({
  mode: defaulted(
    word(updateModes),
    '`rolling` replaces replica by replica. `blue_green` moves all requests at once, when every new replica is ready. `canary` moves them in `steps` and goes back by itself when the new version is worse.',
    defaultUpdate.mode,
  ),
  surge: defaulted(
    surge,
    'Replicas beyond the desired number during an update: a number, or a share of that number such as `25%`. `blue_green` needs as many as desired.',
    defaultUpdate.surge,
  ),
  max_unavailable: defaulted(
    replicaCount,
    'How many fewer replicas than desired may be ready because of an update.',
    defaultUpdate.maxUnavailable,
  ),
  steps: defaulted(steps, 'Shares of the requests that a `canary` gets one after the other, in percent.', [...defaultUpdate.steps]),
  bake_seconds: defaulted(
    duration,
    'How long each step of a `canary` lasts, and how long the old replicas of `blue_green` stay after the switch.',
    defaultUpdate.bakeSeconds,
  ),
  session: field(session, 'What names a session: during a `canary`, requests of one session go to one version.'),
}).refine(
  ({ surge: extra, max_unavailable: maxUnavailable }) => canReplace({ surge: extra, maxUnavailable }),
  'sets both surge and max_unavailable to 0, so that no replica could be replaced\nSet one of them to 1 or more.',
);

/** YAML reads a version without quotes as a number. */
const tlsVersion = z.union([
  z.enum(tlsVersions),
  reading(z.literal(tlsVersions.map(Number)), (version): Reading<TlsVersion> => ({ ok: version === 1.3 ? '1.3' : '1.2' })),
]);

const tls = section({
  keyfile: required(someText, 'Path of the private key (PEM) on this machine, relative to the file.'),
  certfile: required(someText, 'Path of the certificate chain (PEM) on this machine, relative to the file.'),
  client_ca: field(
    someText,
    'Path of the certificates (PEM) of authorities. With it, clients need a certificate that one of them issued, and replicas get its subject in `X-Svc-Client-Subject`.',
  ),
  min_version: field(tlsVersion, 'Oldest version of TLS that clients may use.', '1.2'),
  ciphers: field(
    z.array(z.enum(tlsSuites)).min(1),
    'The cipher suites that clients may use, by their names in OpenSSL and with the preferred one first. Each accepted version needs one; those of TLS 1.3 begin with `TLS_`.',
    { words: 'all of them' },
  ),
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
  max_hourly_cost: field(
    z.number().gt(0),
    'US dollars an hour that all replicas may cost together. Replicas beyond it are not launched, also not for an update.',
  ),
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
