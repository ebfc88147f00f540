/** A setting of `load_balancer:`. Its row gives schema, reference, type, default and the balancer's configuration. */
export interface LoadBalancerSetting {
  /** Its name in a parsed and stored task. Without one a row has no own value: it is the `otherwise` of others. */
  readonly name?: string;
  readonly kind: 'port' | 'count' | 'bytes' | 'seconds' | 'flag' | 'address-ranges';
  /** Bounds of a count or of bytes; the fewest entries of a list. */
  readonly min?: number;
  readonly max?: number;
  /** The sentence in the reference. */
  readonly doc: string;
  /** Without one, an omitted setting is undefined. */
  readonly default?: number | boolean | readonly string[];
  /** The default in the reference, where a value would not say enough. */
  readonly defaultWords?: string;
  /** The field whose value replaces the default. */
  readonly otherwise?: string;
  /** `balancerConfig` calculates with the setting. Any other setting reaches the balancer by itself. */
  readonly calculated?: true;
}

/** Upper bound of the configurable limits: a balancer holds a head in memory until it is complete. */
const mebibyte = 1_048_576;

/** How long a request waits for a first replica, s. Finding a machine and loading a model can take minutes. */
export const fromZeroWaitSeconds = 600;

/** Wait after the last replica is lost, s. A replacement takes seconds, and clients rarely time out sooner. */
export const replacementWaitSeconds = 30;

/** The settings of `load_balancer:`, in the order of the reference. */
const table = {
  port: {
    name: 'port',
    kind: 'port',
    doc: 'A fixed port for the endpoint.',
    defaultWords: 'a free one from 30001 to 32767',
    calculated: true,
  },
  http_redirect_port: {
    name: 'httpRedirectPort',
    kind: 'port',
    doc: 'A port for plain HTTP that answers 308 with the address of the endpoint. Needs `tls`.',
    defaultWords: 'none',
  },
  first_byte_timeout_seconds: {
    name: 'firstByteTimeoutSeconds',
    kind: 'seconds',
    doc: 'How long a replica may take until the first byte of its answer.',
    default: 300,
    otherwise: 'stream_timeout_seconds',
  },
  idle_timeout_seconds: {
    name: 'idleTimeoutSeconds',
    kind: 'seconds',
    doc: 'How long an answer that has begun may pause.',
    default: 300,
    otherwise: 'stream_timeout_seconds',
  },
  stream_timeout_seconds: {
    kind: 'seconds',
    doc: 'Default of both `first_byte_timeout_seconds` and `idle_timeout_seconds`.',
  },
  max_body_size: {
    name: 'maxBodyBytes',
    kind: 'bytes',
    doc: 'Largest body of a request: bytes, or a size such as `16MB`.',
    defaultWords: 'unlimited',
  },
  retry_unsafe: {
    name: 'retryUnsafe',
    kind: 'flag',
    doc: 'Send POST and PATCH requests again, to another replica, when one failed before it answered. Only for programs on which a request may run twice: one that kills its replica would be sent to the next.',
    default: false,
  },
  expose_replica: {
    name: 'exposeReplica',
    kind: 'flag',
    doc: 'Name the replica that answered in a response header.',
    default: false,
  },
  threads: {
    name: 'threads',
    kind: 'count',
    min: 1,
    max: 64,
    doc: 'Threads of the balancer, which share the port and count together.',
    defaultWords: 'one for each two vCPUs',
    calculated: true,
  },
  max_request_line_size: {
    name: 'maxRequestLineBytes',
    kind: 'bytes',
    min: 256,
    max: mebibyte,
    doc: 'Longest request line (method and URL); a longer one is answered 414.',
    default: 8_192,
  },
  max_header_size: {
    name: 'maxHeaderBytes',
    kind: 'bytes',
    min: 1_024,
    max: mebibyte,
    doc: 'Most bytes of the header fields of a request, all together; more are answered 431.',
    default: 32_768,
  },
  max_header_count: {
    name: 'maxHeaderCount',
    kind: 'count',
    min: 1,
    max: 10_000,
    doc: 'Most header fields of a request; more are answered 431.',
    default: 100,
  },
  max_connections: {
    name: 'maxConnections',
    kind: 'count',
    min: 1,
    max: 1_000_000,
    doc: 'Most open connections of clients; requests on more are answered 503, and with `tls` such connections are closed at once.',
    defaultWords: 'what the limit of open files allows',
  },
  max_connections_per_replica: {
    name: 'maxConnectionsPerReplica',
    kind: 'count',
    min: 1,
    max: 1_000_000,
    // Half of the local ports that Linux has for connections to one address (`ip_local_port_range`).
    doc: 'Most requests of clients at one time at a replica. More go to another replica, or wait in order of arrival until one ends. Each balancer counts its own; during an update of a balancer both do.',
    default: 16_384,
  },
  keep_alive_timeout_seconds: {
    name: 'keepAliveTimeoutSeconds',
    kind: 'seconds',
    doc: 'How long an idle connection of a client is kept open.',
    default: 75,
  },
  queue_size: {
    name: 'queueSize',
    kind: 'count',
    min: 0,
    max: 1_000_000,
    doc: 'Most requests that wait for a replica: when the last one has just gone, when each is full (`max_connections_per_replica`), or when `min_replicas` is 0 and the service wakes up. More are answered 503.',
    default: 1_000,
    calculated: true,
  },
  queue_bytes: {
    name: 'queueBytes',
    kind: 'bytes',
    doc: 'Most bytes of the bodies of waiting requests, all together; requests beyond are answered 503.',
    default: 64 * mebibyte,
    defaultWords: '64MB',
    calculated: true,
  },
  queue_timeout_seconds: {
    name: 'queueTimeoutSeconds',
    kind: 'seconds',
    doc: 'How long such a request waits.',
    defaultWords: `${fromZeroWaitSeconds} where \`min_replicas\` is 0, otherwise ${replacementWaitSeconds}`,
    calculated: true,
  },
  trusted_proxies: {
    name: 'trustedProxies',
    kind: 'address-ranges',
    min: 0,
    doc: 'Proxies before the endpoint, as addresses or ranges such as `10.0.0.0/8`: their `X-Forwarded-*` fields are believed.',
    default: [],
    defaultWords: 'none',
  },
  proxy_protocol: {
    name: 'proxyProtocol',
    kind: 'address-ranges',
    min: 0,
    doc: 'Proxies that begin each connection with a header of the PROXY protocol (version 1 or 2), as addresses or ranges: the client address in it is believed. Without a valid header their connections are closed.',
    default: [],
    defaultWords: 'none',
  },
  allow: {
    name: 'allow',
    kind: 'address-ranges',
    doc: 'The clients that may connect, as addresses or ranges such as `10.0.0.0/8`. Connections from other addresses are closed at once.',
    defaultWords: 'all',
  },
  access_log_addresses: {
    name: 'accessLogAddresses',
    kind: 'flag',
    doc: "Have the access log name each client's address, which is personal data in many places. Behind a proxy it is that of the proxy, unless `proxy_protocol` names it.",
    default: false,
  },
  metrics_port: {
    name: 'metricsPort',
    kind: 'port',
    doc: 'A port of 127.0.0.1 where Prometheus finds the metrics, besides their Unix socket. Not the `port` of the endpoint.',
    defaultWords: 'none',
  },
} as const satisfies Readonly<Record<string, LoadBalancerSetting>>;

type Row = (typeof table)[keyof typeof table];
type NamedRow = Extract<Row, { readonly name: string }>;
type PassedRow = Exclude<NamedRow, { readonly calculated: true }>;

type Value<Kind> = Kind extends 'flag' ? boolean : Kind extends 'address-ranges' ? readonly string[] : number;
type ValueOr<Absent, Of extends Row> = Value<Of['kind']> | (Of extends { readonly default: unknown } ? never : Absent);
type InMs<Name extends string> = Name extends `${infer Start}Seconds` ? `${Start}Ms` : Name;

/** The settings in a task: times in seconds, `undefined` for an omitted setting without a default. */
export type LoadBalancerSpec = { readonly [Of in NamedRow as Of['name']]: ValueOr<undefined, Of> };

/** The settings that a balancer gets as they are: times in ms, null instead of undefined. */
export type PassedSettings = { readonly [Of in PassedRow as InMs<Of['name']>]: ValueOr<null, Of> };

/** The settings with the names of their fields. */
export const loadBalancerSettings: readonly (readonly [field: string, setting: LoadBalancerSetting])[] = Object.entries(table);

/** The settings of a task file, by the names of their fields. */
export function readLoadBalancer(fields: Readonly<Record<string, unknown>>): LoadBalancerSpec {
  const values = loadBalancerSettings.flatMap(([field, { name, otherwise = field, default: unset }]) => {
    return name === undefined ? [] : [[name, fields[field] ?? fields[otherwise] ?? unset]];
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema, made of the same rows, has checked each field
  return Object.fromEntries(values) as LoadBalancerSpec;
}

/** The settings of a stored task with the defaults of those that its version did not have. */
export function withDefaults(stored: Partial<LoadBalancerSpec>): LoadBalancerSpec {
  const missing = loadBalancerSettings.flatMap(([, { name, default: unset }]) => {
    return name === undefined || unset === undefined || Object.hasOwn(stored, name) ? [] : [[name, unset]];
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only settings without a default are missing now
  return { ...stored, ...Object.fromEntries(missing) } as LoadBalancerSpec;
}

/** The settings that reach the balancer by themselves, by their names in its configuration. */
export const passedSettings = loadBalancerSettings.flatMap(([, { name, kind, min, calculated, default: unset }]) => {
  if (name === undefined || calculated) return [];
  const passedAs = kind === 'seconds' ? name.replace(/Seconds$/, 'Ms') : name;
  return [{ name, passedAs, kind, canBeZero: min === 0, isNullable: unset === undefined }];
});

/** The part of the balancer's configuration that needs no calculation. */
export function passSettings(spec: LoadBalancerSpec): PassedSettings {
  const values = new Map<string, unknown>(Object.entries(spec));
  const passed = passedSettings.map(({ name, passedAs, kind }) => {
    const value = values.get(name) ?? null;
    return [passedAs, kind === 'seconds' && typeof value === 'number' ? value * 1_000 : value];
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- name and value of each row follow the type's rule
  return Object.fromEntries(passed) as PassedSettings;
}
