import type { Pod } from '../../kubernetes/pod.ts';
import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import { parseJson, isObject } from '../../shared/json.ts';
import type { EndpointsService } from './cluster-facts.ts';
import { findLeader, isReady, podsOf, troubleOf, type Leader } from './leader.ts';
import { anchorData, haNames } from './names.ts';
import type { PodRole } from './object-parts.ts';
import { readDeployment } from './rollout.ts';
import { kubectlAt, type KubernetesSite } from './site.ts';

/** One pod of a controller in a Kubernetes cluster. */
export interface PodLine {
  readonly name: string;
  readonly node: string | null;
  readonly ready: boolean;
  readonly trouble: string | null;
}

/** Status of a controller in a Kubernetes cluster. Plain data. */
export interface KubernetesControllerStatus extends KubernetesSite {
  /** `absent`: its objects do not exist; `stopped`: by a command. */
  readonly state: 'absent' | 'stopped' | 'running';
  readonly leader: Leader | null;
  readonly database: 'sqlite' | 'postgresql';
  readonly controllers: readonly PodLine[];
  readonly balancers: readonly PodLine[];
  readonly checkers: readonly PodLine[];
  readonly endpoints: { readonly type: string; readonly host: string | null };
}

/** Reads the status from the Kubernetes cluster. */
export async function kubernetesControllerStatus(
  site: KubernetesSite,
  api: KubeApi,
  signal: AbortSignal,
): Promise<KubernetesControllerStatus> {
  const { namespace } = site;
  const lines = async (role: PodRole): Promise<readonly PodLine[]> => (await podsOf(api, site, role, signal)).map(lineOf);
  const [deployment, leader, volume, controllers, balancers, checkers, service, anchor] = await Promise.all([
    readDeployment(api, site, 'controller', signal),
    findLeader(api, site, signal),
    api.get(pathOfOne('PersistentVolumeClaim', namespace, haNames.volume), { signal }),
    lines('controller'),
    lines('balancer'),
    lines('checker'),
    api.get<EndpointsService>(pathOfOne('Service', namespace, haNames.endpoints), { signal }),
    api.get<KubeObject & { readonly data?: Readonly<Record<string, string>> }>(pathOfOne('ConfigMap', namespace, haNames.anchor), {
      signal,
    }),
  ]);
  const host = parseJson(anchor?.data?.[anchorData.host] ?? 'null');
  return {
    ...site,
    state: deployment === undefined ? 'absent' : deployment.spec?.replicas === 0 ? 'stopped' : 'running',
    leader: leader ?? null,
    database: volume === undefined ? 'postgresql' : 'sqlite',
    controllers,
    balancers,
    checkers,
    endpoints: {
      type: service?.spec?.type ?? 'absent',
      host: isObject(host) && typeof host['publicHost'] === 'string' ? host['publicHost'] : null,
    },
  };
}

function lineOf(pod: Pod): PodLine {
  const isGoing = pod.metadata.deletionTimestamp !== undefined;
  return {
    name: pod.metadata.name,
    node: pod.spec?.nodeName ?? null,
    ready: isReady(pod),
    trouble: isGoing ? 'it is ending' : (troubleOf(pod)?.text ?? null),
  };
}

/** A command that makes endpoints reachable from outside; undefined when their Service already is. */
export function outsideHint(site: KubernetesSite, type: string): string | undefined {
  if (type !== 'ClusterIP') return undefined;
  return `${kubectlAt(site)} port-forward service/${haNames.endpoints} PORT`;
}
