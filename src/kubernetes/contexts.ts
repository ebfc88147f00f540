import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../shared/clock.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { SvcError } from '../shared/errors.ts';
import type { Fence } from '../shared/fence.ts';
import { isObject } from '../shared/json.ts';
import type { Random } from '../shared/random.ts';
import type { KubeApi } from './kube-api.ts';
import {
  defaultKubeconfigSource,
  isLoopback,
  readKubeconfig,
  type KubeCluster,
  type Kubeconfig,
  type KubeconfigPart,
  type KubeconfigSource,
} from './kubeconfig.ts';
import { kubeLogin } from './login.ts';
import { KubeClient } from './kube-client.ts';

/** Context for the service account of the pod that this process runs in. */
export const inClusterContext = 'in-cluster';

/** All contexts at this moment. */
export interface KubeContexts {
  readonly names: readonly string[];
  /** As for kubectl; `in-cluster` in a pod without a kubeconfig; undefined when none is set. */
  readonly current: string | undefined;
  has(name: string): boolean;
  /** Throws SVC_CREDENTIALS when the context does not exist or is incomplete. */
  cluster(name: string): KubeCluster;
}

/** Reads the kubeconfig in a millisecond, so callers need no cache. Throws SVC_CREDENTIALS when it is unreadable. */
export function kubeContexts(source: KubeconfigSource = defaultKubeconfigSource()): KubeContexts {
  const said = readKubeconfig(source.files);
  const names = [...said.contexts.keys()];
  if (source.pod !== undefined && !said.contexts.has(inClusterContext)) names.push(inClusterContext);
  return {
    names,
    current: said.currentContext ?? (source.pod === undefined ? undefined : inClusterContext),
    has: (name) => names.includes(name),
    cluster(name) {
      const context = said.contexts.get(name);
      if (context !== undefined) return clusterOf(name, context, said, source);
      if (name === inClusterContext && source.pod !== undefined) return ownCluster(source.pod);
      throw missingContext(name, names, source.files);
    },
  };
}

function missingContext(name: string, names: readonly string[], files: readonly string[]): SvcError {
  const where = files.length === 0 ? 'no kubeconfig' : files.join(', ');
  const meant = didYouMean(name, names);
  const known = names.length === 0 ? 'there are none' : `there are: ${names.join(', ')}`;
  return new SvcError('SVC_CREDENTIALS', `There is no context ${name} in the kubeconfig (${where}); ${known}.`, {
    hint: meant === undefined ? 'Name a context that kubectl config get-contexts lists.' : `Did you mean ${meant}?`,
  });
}

function clusterOf(name: string, context: KubeconfigPart, said: Kubeconfig, { pod }: KubeconfigSource): KubeCluster {
  const cluster = said.clusters.get(String(context['cluster']));
  const server = cluster?.['server'];
  if (cluster === undefined || typeof server !== 'string')
    throw notWhole(name, `its cluster ${String(context['cluster'])} is not described`);
  const userName = context['user'];
  const user = typeof userName === 'string' ? said.users.get(userName) : {};
  if (user === undefined) throw notWhole(name, `its user ${String(userName)} is not described`);
  const url = URL.parse(server);
  if (url === null || !['https:', 'http:'].includes(url.protocol)) throw notWhole(name, 'the address of its API server is none');
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw notWhole(name, `its API server ${url.host} is to be reached without TLS: anybody on the way could read the login`);
  }
  const namespace = context['namespace'];
  return {
    context: name,
    namespace: typeof namespace === 'string' && namespace !== '' ? namespace : 'default',
    server: shownServer(url),
    insecure: cluster['insecure-skip-tls-verify'] === true,
    login: loginOf(user),
    proxied: typeof cluster['proxy-url'] === 'string' && cluster['proxy-url'] !== '',
    isInside: pod !== undefined && [pod.host, 'kubernetes.default.svc', 'kubernetes.default'].includes(bare(url.hostname)),
    cluster,
    user,
  };
}

function notWhole(name: string, why: string): SvcError {
  return new SvcError('SVC_CREDENTIALS', `The context ${name} of the kubeconfig cannot be used: ${why}.`, {
    hint: 'Correct the kubeconfig; kubectl config view shows it.',
  });
}

/** For the pod's service account. Kubernetes passes the API server's address to every pod. */
function ownCluster({ host, port, folder }: NonNullable<KubeconfigSource['pod']>): KubeCluster {
  let namespace = '';
  try {
    namespace = readFileSync(join(folder, 'namespace'), 'utf8').trim();
  } catch {
    // Older Kubernetes clusters may not mount it.
  }
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return {
    context: inClusterContext,
    namespace: namespace === '' ? 'default' : namespace,
    server,
    insecure: false,
    login: 'service account of the pod',
    proxied: false,
    isInside: true,
    cluster: { server, 'certificate-authority': join(folder, 'ca.crt') },
    user: { tokenFile: join(folder, 'token') },
  };
}

function shownServer(url: URL): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return shown.href.replace(/\/+$/, '');
}

function loginOf(user: KubeconfigPart): string {
  const { exec } = user;
  if (isObject(exec)) return `credential plugin ${String(exec['command'])}`;
  const provider = user['auth-provider'];
  if (isObject(provider)) return `login provider ${String(provider['name'])}`;
  if (user['tokenFile'] !== undefined || user['token'] !== undefined) return 'token';
  if (user['client-certificate'] !== undefined || user['client-certificate-data'] !== undefined) return 'client certificate';
  return user['username'] === undefined ? 'none' : 'user name and password';
}

function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

interface OpenKubeApiOptions {
  readonly fence: Fence;
  readonly clock: Clock;
  readonly random: Random;
  /** Replaces the context's namespace. */
  readonly namespace?: string | undefined;
  readonly source?: KubeconfigSource;
}

/** Opens the API of a context. Sends nothing before the first call. Throws SVC_CREDENTIALS for an unknown context. */
export function openKubeApi(context: string, { fence, clock, random, namespace, source }: OpenKubeApiOptions): KubeApi {
  const from = source ?? defaultKubeconfigSource();
  const read = (): KubeCluster => kubeContexts(from).cluster(context);
  const cluster = read();
  return new KubeClient(
    { context, namespace: namespace ?? cluster.namespace, isInside: cluster.isInside },
    { context, login: kubeLogin(from.files, read, clock), fence, clock, random },
  );
}
