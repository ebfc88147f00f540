import { readFileSync } from 'node:fs';
import { messageOf } from '../shared/errors.ts';
import { isObject } from '../shared/json.ts';
import { inClusterContext, kubeContexts } from './contexts.ts';
import { defaultKubeconfigSource, isLoopback, type KubeCluster, type KubeconfigPart, type KubeconfigSource } from './kubeconfig.ts';

interface PortableKubeconfig {
  /** As JSON (a subset of YAML); needs no other file and no program. Secret. Undefined: no context is portable. */
  readonly text: string | undefined;
  readonly contexts: readonly string[];
  readonly leftOut: readonly { readonly context: string; readonly reason: string }[];
}

/** Auth providers whose logins svc renews itself, from the kubeconfig. */
const portableProviders = ['oidc'];

/** Has only the given contexts, with certificates, keys and tokens. Throws SVC_CREDENTIALS for unreadable files. */
export function portableKubeconfig(names: readonly string[], source: KubeconfigSource = defaultKubeconfigSource()): PortableKubeconfig {
  const contexts = kubeContexts(source);
  const leftOut: { context: string; reason: string }[] = [];
  const parts: { name: string; cluster: KubeconfigPart; user: KubeconfigPart; namespace: string }[] = [];
  for (const name of names) {
    try {
      const found = contexts.cluster(name);
      const reason = whyNotPortable(found);
      if (reason === undefined) parts.push({ name, namespace: found.namespace, ...withEmbeddedFiles(found) });
      else leftOut.push({ context: name, reason });
    } catch (error) {
      leftOut.push({ context: name, reason: messageOf(error) });
    }
  }
  const current = parts.find(({ name }) => name === contexts.current) ?? parts[0];
  return {
    text: current === undefined ? undefined : JSON.stringify(configOf(parts, current.name), null, 2),
    contexts: parts.map(({ name }) => name),
    leftOut,
  };
}

function configOf(
  parts: readonly { readonly name: string; readonly cluster: KubeconfigPart; readonly user: KubeconfigPart; readonly namespace: string }[],
  current: string,
): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current,
    contexts: parts.map(({ name, namespace }) => ({ name, context: { cluster: name, user: name, namespace } })),
    clusters: parts.map(({ name, cluster }) => ({ name, cluster })),
    users: parts.map(({ name, user }) => ({ name, user })),
  };
}

function whyNotPortable({ context, server, user, cluster }: KubeCluster): string | undefined {
  const { exec } = user;
  const provider = user['auth-provider'];
  const proxy = cluster['proxy-url'];
  if (context === inClusterContext) return 'it is the service account of the pod that this command runs in';
  if (isObject(exec)) return `its user logs in with the program ${String(exec['command'])}, which is not there`;
  if (isObject(provider) && !portableProviders.includes(String(provider['name']))) {
    return `its user logs in with ${String(provider['name'])}, which needs programs that are not there`;
  }
  if (isLoopback(new URL(server).hostname)) return `its API server ${server} is on this machine`;
  if (typeof proxy === 'string' && isLoopback(URL.parse(proxy)?.hostname ?? '')) return `it is reached through a proxy on this machine`;
  return undefined;
}

function withEmbeddedFiles({ cluster, user }: KubeCluster): { readonly cluster: KubeconfigPart; readonly user: KubeconfigPart } {
  const provider = user['auth-provider'];
  const settings = isObject(provider) && isObject(provider['config']) ? provider['config'] : undefined;
  const inside = embed(embed(user, 'client-certificate'), 'client-key');
  const { tokenFile, ...rest } = inside;
  return {
    cluster: embed(cluster, 'certificate-authority'),
    user: {
      ...rest,
      ...(typeof tokenFile === 'string' ? { token: readFileSync(tokenFile, 'utf8').trim() } : {}),
      ...(settings === undefined
        ? {}
        : { 'auth-provider': { ...asObject(provider), config: embed(settings, 'idp-certificate-authority') } }),
    },
  };
}

function asObject(value: unknown): KubeconfigPart {
  return isObject(value) ? value : {};
}

/** With both present, kubectl uses the data. */
function embed(part: KubeconfigPart, field: string): KubeconfigPart {
  const { [field]: file, ...rest } = part;
  const dataField = `${field}-data`;
  if (typeof file !== 'string' || file === '' || part[dataField] !== undefined) return rest;
  return { ...rest, [dataField]: readFileSync(file).toString('base64') };
}
