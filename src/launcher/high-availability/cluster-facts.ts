import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfAll, pathOfOne } from '../../kubernetes/paths.ts';
import { readPolicyVersion } from '../../kubernetes/policy-version.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ClusterFacts, HighAvailabilityDesign } from './design.ts';
import { anchorData, haNames } from './names.ts';
import { tokenKey } from './settings-objects.ts';
import type { KubernetesDeps, KubernetesSite } from './site.ts';

interface DataObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** The fields that give the endpoints' address. */
export interface EndpointsService extends KubeObject {
  readonly spec?: { readonly type?: string; readonly clusterIP?: string };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] } };
}

/** The fields of a node that are read. */
export interface NodeObject extends KubeObject {
  readonly status?: {
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface Anchor {
  readonly uid: string;
  readonly key: string;
  /** It is being removed; its dependents will follow. */
  readonly isGoing: boolean;
}

/** Whether this user lacks the permission for a call. */
export function isDenied(error: unknown): boolean {
  return error instanceof SvcError && error.code === 'SVC_DENIED';
}

/** The result of a read; undefined also when this user lacks the permission. */
export async function readIfAllowed<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isDenied(error)) return undefined;
    throw error;
  }
}

/** The existing controller, also one that another home deployed. */
export async function findAnchor(api: KubeApi, { namespace }: KubernetesSite, signal: AbortSignal): Promise<Anchor | undefined> {
  const found = await api.get<DataObject>(pathOfOne('ConfigMap', namespace, haNames.anchor), { signal });
  const key = found?.data?.[anchorData.key];
  if (found === undefined) return undefined;
  if (key !== undefined && key !== '') return { uid: found.metadata.uid, key, isGoing: found.metadata.deletionTimestamp !== undefined };
  throw new SvcError('SVC_CONTROLLER_KIND', `The namespace ${namespace} has a ConfigMap ${haNames.anchor} that is none of svc.`, {
    hint: 'Use another namespace: kubernetes: {namespace: NAME} in config.yaml.',
  });
}

/** The token that controller and balancers share; undefined when there is none. */
export async function readToken(api: KubeApi, { namespace }: KubernetesSite, signal: AbortSignal): Promise<string | undefined> {
  const found = await api.get<DataObject>(pathOfOne('Secret', namespace, haNames.token), { signal });
  const coded = found?.data?.[tokenKey];
  return coded === undefined || coded === '' ? undefined : Buffer.from(coded, 'base64').toString('utf8');
}

/** A constant and unique id; undefined when this user may not read it. */
export async function clusterIdentity(api: KubeApi, signal: AbortSignal): Promise<string | undefined> {
  return (await readIfAllowed(() => api.get(pathOfOne('Namespace', undefined, 'kube-system'), { signal })))?.metadata.uid;
}

/** Facts that are read before any object is created. */
export async function readClusterFacts(
  site: KubernetesSite,
  key: string,
  { api, signal }: Pick<KubernetesDeps, 'api' | 'signal'>,
  type: HighAvailabilityDesign['endpointService'],
): Promise<ClusterFacts> {
  const [policyVersion, host] = await Promise.all([readPolicyVersion(api, signal), outsideHost(api, site, type, signal)]);
  return { key, policyVersion, outsideHost: host };
}

/** The Service's name or address from outside; undefined while, or where, it has none. */
export async function outsideHost(
  api: KubeApi,
  { namespace }: KubernetesSite,
  type: HighAvailabilityDesign['endpointService'],
  signal: AbortSignal,
): Promise<string | undefined> {
  if (type === 'ClusterIP') return undefined;
  if (type === 'NodePort') return nodeAddress(api, signal);
  const service = await api.get<EndpointsService>(pathOfOne('Service', namespace, haNames.endpoints), { signal });
  const [ingress] = service?.status?.loadBalancer?.ingress ?? [];
  return ingress?.ip ?? ingress?.hostname;
}

async function nodeAddress(api: KubeApi, signal: AbortSignal): Promise<string | undefined> {
  const { items = [] } = (await readIfAllowed(() => api.list<NodeObject>(pathOfAll('Node'), { signal }))) ?? {};
  const addresses = items.filter(isReadyNode).flatMap(({ status }) => status?.addresses ?? []);
  return (addresses.find(({ type }) => type === 'ExternalIP') ?? addresses.find(({ type }) => type === 'InternalIP'))?.address;
}

/** Whether Kubernetes considers the node as working. */
export function isReadyNode({ status }: NodeObject): boolean {
  return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
}
