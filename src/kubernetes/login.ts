import { Agent as HttpAgent, type OutgoingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import type { ConnectionOptions } from 'node:tls';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Clock } from '../shared/clock.ts';
import { withDeadline, unlessAborted } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { fingerprint } from '../shared/hex.ts';
import { isObject } from '../shared/json.ts';
import { kubeconfigStamp, type KubeCluster, type KubeconfigPart } from './kubeconfig.ts';

/** Address and credentials of an API server for one request. Secret: never shown. */
export interface KubeAccess {
  /** Without trailing slash; may have a path. */
  readonly server: URL;
  readonly headers: OutgoingHttpHeaders;
  /** `user:password`, for basic authentication. */
  readonly auth: string | undefined;
  readonly tls: ConnectionOptions;
  /** For requests; keeps connections. */
  readonly agent: HttpAgent;
  /** For connections that become WebSockets; only with a proxy. */
  readonly upgradeAgent: HttpAgent | undefined;
}

/** Keeps a user logged in: runs credential plugins, renews tokens, reads a changed kubeconfig again. */
export interface KubeLogin {
  /** Current credentials. Throws SVC_CREDENTIALS. */
  access(signal?: AbortSignal): Promise<KubeAccess>;
  /** The server rejected these credentials: discards all cached ones, unless that happened meanwhile. */
  refused(access: KubeAccess): void;
  /** Open connections may be dead: the next requests open new ones. */
  forgetConnections(): void;
}

/** Time for a user at a browser. A longer login fails. */
const loginTimeoutMs = 60_000;

/** Characters of a plugin's output in a message. */
const longestReason = 500;

/** Below load balancers' idle limits: a request must not reuse a connection at the moment when it is closed. */
const idleSocketMs = 30_000;

/** `read` finds the context in the files. It is called again when they have changed. */
export function kubeLogin(files: readonly string[], read: () => KubeCluster, clock: Clock): KubeLogin {
  let current: { readonly stamp: string; readonly cluster: KubeCluster; readonly library: KubeConfig } | undefined;
  let kept: { readonly key: string; readonly agent: HttpAgent } | undefined;
  let underWay: Promise<LoggedIn> | undefined;
  let issued = new WeakSet<KubeAccess>();

  const load = async (): Promise<NonNullable<typeof current>> => {
    const stamp = kubeconfigStamp(files);
    if (current?.stamp === stamp) return current;
    const cluster = read();
    // Loading takes half a second. Only commands that use Kubernetes wait for it.
    const { KubeConfig: LazyConfig } = await import('@kubernetes/client-node');
    const library = new LazyConfig();
    library.loadFromString(JSON.stringify(configOf(cluster)));
    current = { stamp, cluster, library };
    return current;
  };

  const logIn = async (): Promise<LoggedIn> => {
    const { cluster, library } = await load();
    return { cluster, options: await loginOptions(library, cluster, clock) };
  };

  /** Shared by concurrent callers: a login may start a program, which takes a second of CPU time, or ask a server. */
  const sharedLogIn = (): Promise<LoggedIn> => {
    if (underWay !== undefined) return underWay;
    const own = logIn().finally(() => {
      if (underWay === own) underWay = undefined;
    });
    underWay = own;
    return own;
  };

  const agentOf = (cluster: KubeCluster, tls: ConnectionOptions, proxy: HttpAgent | undefined): HttpAgent => {
    const key = fingerprint(JSON.stringify([cluster.server, tls, proxy !== undefined]));
    if (kept?.key === key) return kept.agent;
    closeIdle(kept?.agent);
    kept = { key, agent: proxy ?? newAgent(cluster, tls) };
    return kept.agent;
  };

  return {
    async access(signal) {
      const ours = issued;
      const { cluster, options } = await unlessAborted(sharedLogIn(), signal);
      const tls = tlsOf(options, cluster);
      const proxy = cluster.proxied && options.agent instanceof HttpAgent ? options.agent : undefined;
      const access = {
        server: new URL(cluster.server),
        headers: headersOf(options, cluster),
        auth: typeof options.auth === 'string' ? options.auth : undefined,
        tls,
        agent: agentOf(cluster, tls, proxy),
        upgradeAgent: proxy,
      };
      ours.add(access);
      return access;
    },
    refused(access) {
      if (!issued.has(access)) return;
      issued = new WeakSet();
      current = undefined;
      underWay = undefined;
    },
    forgetConnections() {
      closeIdle(kept?.agent);
      kept = undefined;
      // The library caches proxy agents itself.
      if (current?.cluster.proxied === true) current = undefined;
    },
  };
}

const late = (): Error => new Error(`no answer within ${loginTimeoutMs / 1_000} s`);

interface LoggedIn {
  readonly cluster: KubeCluster;
  readonly options: RequestOptions;
}

/** The library may have to log the user in first. Throws SVC_CREDENTIALS. */
async function loginOptions(library: KubeConfig, cluster: KubeCluster, clock: Clock): Promise<RequestOptions> {
  const options: RequestOptions = {};
  try {
    await withDeadline(clock, loginTimeoutMs, () => library.applyToHTTPSOptions(options), late);
    return options;
  } catch (error) {
    throw loginError(cluster, error);
  }
}

/** Requests in progress continue. Their connections close when idle. */
function closeIdle(agent: HttpAgent | undefined): void {
  for (const sockets of Object.values(agent?.freeSockets ?? {})) for (const socket of sockets ?? []) socket.destroy();
}

function newAgent(cluster: KubeCluster, tls: ConnectionOptions): HttpAgent {
  const options = { keepAlive: true, timeout: idleSocketMs, scheduling: 'lifo' as const };
  return cluster.server.startsWith('http:') ? new HttpAgent(options) : new HttpsAgent({ ...options, ...tls });
}

/** Always names a user: without one the library would drop the Kubernetes cluster's certificates. */
function configOf(cluster: KubeCluster): unknown {
  const said: Record<string, unknown> = { ...cluster.cluster };
  // Without TLS, which only loopback may omit (kubectl proxy), the library requires this flag.
  if (cluster.server.startsWith('http:')) said['insecure-skip-tls-verify'] = true;
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    clusters: [{ name: 'one', cluster: said }],
    users: [{ name: 'one', user: forLibrary(cluster) }],
  };
}

function forLibrary(cluster: KubeCluster): KubeconfigPart {
  const { tokenFile, exec, ...user } = cluster.user;
  // The library reads a token file, again each minute, only for a pod's service account. This entry makes it read this
  // file too.
  if (typeof tokenFile === 'string') return { ...user, token: undefined, 'auth-provider': { name: 'tokenFile', config: { tokenFile } } };
  if (!isObject(exec)) return user;
  return { ...user, exec: { ...exec, env: [...(Array.isArray(exec['env']) ? exec['env'] : []), execInfo(exec, cluster)] } };
}

/** The variable that kubectl passes to a plugin; several plugins fail without it. */
function execInfo(exec: KubeconfigPart, cluster: KubeCluster): { readonly name: string; readonly value: string } {
  const { server } = cluster;
  const clusterInfo = {
    server,
    'tls-server-name': cluster.cluster['tls-server-name'],
    'insecure-skip-tls-verify': cluster.cluster['insecure-skip-tls-verify'],
    'certificate-authority-data': cluster.cluster['certificate-authority-data'],
    'proxy-url': cluster.cluster['proxy-url'],
  };
  const spec = { interactive: false, ...(exec['provideClusterInfo'] === true ? { cluster: clusterInfo } : {}) };
  return { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify({ apiVersion: exec['apiVersion'], kind: 'ExecCredential', spec }) };
}

/** Sets verification explicitly, so that no environment variable can turn it off. */
function tlsOf(options: RequestOptions, cluster: KubeCluster): ConnectionOptions {
  const { ca, cert, key, servername } = options;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
    rejectUnauthorized: !cluster.insecure,
  };
}

/** The library omits impersonated groups. Without them, requests would have more rights than the user intended. */
function headersOf(options: RequestOptions, { user }: KubeCluster): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name] = typeof value === 'string' ? value.trim() : value;
  const groups = user['as-groups'];
  if (Array.isArray(groups)) headers['Impersonate-Group'] = groups.map(String);
  if (typeof user['as-uid'] === 'string') headers['Impersonate-Uid'] = user['as-uid'];
  const extra = user['as-user-extra'];
  if (isObject(extra)) {
    for (const [name, values] of Object.entries(extra)) {
      headers[`Impersonate-Extra-${encodeURIComponent(name)}`] = Array.isArray(values) ? values.map(String) : String(values);
    }
  }
  return headers;
}

/** Does not quote output that could be the credential itself. */
function loginError(cluster: KubeCluster, error: unknown): SvcError {
  const { exec } = cluster.user;
  const plugin = isObject(exec) ? ` (credential plugin ${String(exec['command'])})` : '';
  const quotes = error instanceof SyntaxError || error instanceof TypeError;
  const why = quotes
    ? 'what it printed is not a credential'
    : messageOf(error).trim().slice(0, longestReason) || 'it failed without a word';
  return new SvcError('SVC_CREDENTIALS', `The login to the cluster ${cluster.context} failed${plugin}: ${why}`, {
    hint: "Log in as the cluster's owner says; when kubectl works with this context, so does svc.",
    cause: quotes ? undefined : error,
  });
}
