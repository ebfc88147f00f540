import type { KubernetesConfig } from '../../src/domain/config.ts';
import type { Resources } from '../../src/domain/task.ts';
import type { KubernetesProvider } from '../../src/providers/kubernetes/index.ts';
import type { MachineId, MachineSpec, MachineStatus, Offer } from '../../src/providers/provider.ts';
import { aMachineSpec, someResources } from '../support/builders.ts';
import { addReplicaUser, openKubernetesPlace } from '../support/kubernetes-place.ts';
import type { TestCluster } from '../support/kubernetes.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';

/** What a small replica wants. */
export const small: Resources = someResources({
  cloud: 'kubernetes',
  cpus: { value: 0.5, atLeast: false },
  memory: { value: 0.125, atLeast: false },
});
/** Tags of a replica of a service. */
export const tags = { 'svc-service': 'chat', 'svc-service-key': 'abcd1234', 'svc-replica': '1', 'svc-key': 'abcd1234-1' };

/** A place over a namespace of its own. */
export interface Namespace {
  readonly cluster: TestCluster;
  readonly namespace: string;
  readonly home: string;
  readonly kubeconfig: string;
  readonly place: KubernetesProvider;
  open(config?: Partial<KubernetesConfig>): KubernetesProvider;
}

let count = 0;

/** Runs `use` with a namespace of its own and a user who has exactly the roles that the project writes. No pod is left. */
export async function inNamespace(cluster: TestCluster, use: (world: Namespace) => Promise<void>, withClusterRole = true): Promise<void> {
  count += 1;
  const namespace = `t${count}`;
  const kubeconfig = await addReplicaUser(cluster, namespace, withClusterRole);
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  await waitFor('the token of the service account of the namespace', () =>
    cluster.request<{ readonly secrets?: readonly unknown[] }>('GET', account).then(
      ({ secrets = [] }) => secrets.length > 0,
      () => false,
    ),
  );
  await withTempHome(async (home) => {
    const open = (config: Partial<KubernetesConfig> = {}) => openKubernetesPlace({ kubeconfigs: [kubeconfig], home, config });
    try {
      await use({ cluster, namespace, home, kubeconfig, place: open(), open });
    } finally {
      await cluster.kubectl('-n', namespace, 'delete', 'pods,resourcequotas', '--all', '--force', '--grace-period=0', '--wait=true');
    }
  });
}

/** How a machine is. */
export async function statusOf(place: KubernetesProvider, id: MachineId): Promise<MachineStatus> {
  return (await place.inspect([id], {})).get(id) ?? { state: 'gone', reason: 'unknown' };
}

/** Settles when a machine is so. */
export async function untilState(
  place: KubernetesProvider,
  id: MachineId,
  state: MachineStatus['state'],
  timeoutMs = 60_000,
): Promise<MachineStatus> {
  let last: MachineStatus | undefined;
  const ask = async (): Promise<MachineStatus | undefined> => {
    last = await statusOf(place, id);
    return last.state === state ? last : undefined;
  };
  return waitFor(`${id} to be ${state}`, ask, { timeoutMs, everyMs: 200, describe: () => last });
}

/** The cheapest offer; there has to be one. */
export async function offerOf(place: KubernetesProvider, resources: Resources = small): Promise<Offer> {
  const { offers, whyNone } = await place.offers(resources, {});
  const [offer] = offers;
  if (offer === undefined) throw new Error(`no offer: ${whyNone}`);
  return offer;
}

/** Makes a machine. */
export async function create(place: KubernetesProvider, spec: Partial<MachineSpec> = {}, key = 'k1'): Promise<MachineId> {
  return place.create(await offerOf(place), aMachineSpec({ tags, ports: [8080], ...spec }), key, {});
}

/** Makes a machine that runs. */
export async function running(place: KubernetesProvider, spec: Partial<MachineSpec> = {}, key = 'k1'): Promise<MachineId> {
  const id = await create(place, spec, key);
  await untilState(place, id, 'running');
  return id;
}

/** What is left of ours in a namespace. */
export async function leftIn({ cluster, namespace }: Namespace): Promise<string> {
  return cluster.kubectl('-n', namespace, 'get', 'pods,configmaps,services', '-l', 'svc-owned-by', '-o', 'name');
}

/** Waits until the API server would, or would not, let a pod in: of a class or a quota that it has just been given it hears a moment later itself. */
export async function untilAdmitted({ cluster, namespace }: Namespace, isAdmitted: boolean, spec: object = {}): Promise<void> {
  const container = { name: 'a', image: 'svc-test/busybox:1', command: ['/serve.sh'] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'tried' }, spec: { containers: [container], ...spec } };
  await waitFor(`a pod to be ${isAdmitted ? 'let in' : 'refused'}`, () =>
    cluster.request('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, pod).then(
      () => isAdmitted,
      () => !isAdmitted,
    ),
  );
}

/** A pod that is more important than ours and leaves them no room on their nodes. */
export async function pushAside(world: Namespace): Promise<void> {
  const { cluster, namespace } = world;
  await cluster.apply({ apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'svc-test-high' }, value: 1000 });
  await untilAdmitted(world, true, { priorityClassName: 'svc-test-high' });
  const ours = (await cluster.pods(namespace)).filter(({ node }) => node !== undefined);
  const nodes = [...new Set(ours.flatMap(({ node }) => node ?? []))];
  for (const node of nodes) {
    const { status } = await cluster.request<{ readonly status: { readonly allocatable: { readonly cpu: string } } }>(
      'GET',
      `/api/v1/nodes/${node}`,
    );
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `big-${node}`, namespace },
      spec: {
        priorityClassName: 'svc-test-high',
        nodeSelector: { 'kubernetes.io/hostname': node },
        containers: [
          {
            name: 'a',
            image: 'svc-test/busybox:1',
            command: ['/serve.sh'],
            resources: { requests: { cpu: `${Number(status.allocatable.cpu) * 1_000 - 100}m` } },
          },
        ],
        terminationGracePeriodSeconds: 1,
      },
    });
  }
  const names = ours.map(({ name }) => name);
  await waitFor('our pods to have been preempted', async () => (await cluster.pods(namespace)).every(({ name }) => !names.includes(name)), {
    timeoutMs: 60_000,
    everyMs: 200,
  });
}
