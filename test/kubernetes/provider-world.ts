import type { KubernetesConfig } from '../../src/domain/config.ts';
import type { Resources } from '../../src/domain/task.ts';
import type { KubernetesProvider } from '../../src/providers/kubernetes/index.ts';
import type { MachineId, MachineSpec, MachineStatus, Offer } from '../../src/providers/provider.ts';
import { aMachineSpec, someResources } from '../support/builders.ts';
import { addReplicaUser, openKubernetesProvider } from '../support/kubernetes-provider.ts';
import type { TestCluster } from '../support/kubernetes.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';

/** Resources of a small replica. */
export const small: Resources = someResources({
  cloud: 'kubernetes',
  cpus: { value: 0.5, atLeast: false },
  memory: { value: 0.125, atLeast: false },
});
/** Tags of a replica of a service. */
export const tags = { 'svc-service': 'chat', 'svc-service-key': 'abcd1234', 'svc-replica': '1', 'svc-key': 'abcd1234-1' };

/** A provider over a new namespace. */
export interface Namespace {
  readonly cluster: TestCluster;
  readonly namespace: string;
  readonly home: string;
  readonly kubeconfig: string;
  readonly provider: KubernetesProvider;
  open(config?: Partial<KubernetesConfig>): KubernetesProvider;
}

let count = 0;

/** Runs `use` with a new namespace and a user with exactly the documented roles. No pod may remain. */
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
    const open = (config: Partial<KubernetesConfig> = {}) => openKubernetesProvider({ kubeconfigs: [kubeconfig], home, config });
    try {
      await use({ cluster, namespace, home, kubeconfig, provider: open(), open });
    } finally {
      await cluster.kubectl('-n', namespace, 'delete', 'pods,resourcequotas', '--all', '--force', '--grace-period=0', '--wait=true');
    }
  });
}

/** Returns the state of a machine. */
export async function statusOf(provider: KubernetesProvider, id: MachineId): Promise<MachineStatus> {
  return (await provider.inspect([id], {})).get(id) ?? { state: 'gone', reason: 'unknown' };
}

/** Waits until a machine has the state. */
export async function untilState(provider: KubernetesProvider, id: MachineId, state: MachineStatus['state']): Promise<MachineStatus> {
  let last: MachineStatus | undefined;
  const ask = async (): Promise<MachineStatus | undefined> => {
    last = await statusOf(provider, id);
    return last.state === state ? last : undefined;
  };
  return waitFor(`${id} to be ${state}`, ask, { everyMs: 200, describe: () => last });
}

/** Returns the cheapest offer; fails without offers. */
export async function offerOf(provider: KubernetesProvider, resources: Resources = small): Promise<Offer> {
  const { offers, whyNone } = await provider.offers(resources, {});
  const [offer] = offers;
  if (offer === undefined) throw new Error(`no offer: ${whyNone}`);
  return offer;
}

/** Creates a machine. */
export async function create(provider: KubernetesProvider, spec: Partial<MachineSpec> = {}, key = 'k1'): Promise<MachineId> {
  return provider.create(await offerOf(provider), aMachineSpec({ tags, ports: [8080], ...spec }), key, {});
}

/** Creates a machine and waits until it runs. */
export async function running(provider: KubernetesProvider, spec: Partial<MachineSpec> = {}, key = 'k1'): Promise<MachineId> {
  const id = await create(provider, spec, key);
  await untilState(provider, id, 'running');
  return id;
}

/** Lists svc's objects in a namespace. */
export async function leftIn({ cluster, namespace }: Namespace): Promise<string> {
  return cluster.kubectl('-n', namespace, 'get', 'pods,configmaps,services', '-l', 'svc-owned-by', '-o', 'name');
}

/** Waits until the API server admits, or refuses, a pod: it applies a new class or quota a moment later. */
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

/** A pod with a higher priority, which preempts svc's pods on their nodes. */
export async function preemptPods(world: Namespace): Promise<void> {
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
    everyMs: 200,
  });
}
