import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ServiceView } from '../../src/api/contract.ts';
import { controllerImage, controllerImageName } from '../support/controller-image.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { debianImage, withKubernetes, type PodView, type TestCluster } from '../support/kubernetes.ts';
import { waitFor } from '../support/wait-for.ts';
import { nothingLeft, webFiles } from './cluster-world.ts';

/** Limit for actions that a Kubernetes cluster performs by itself. */
export const slow = { everyMs: 250 } as const;

/**
 * A controller that survives its node, in a Kubernetes cluster of three, and the command line of the user who deployed
 * it.
 */
export interface World {
  readonly svc: Svc;
  readonly cluster: TestCluster;
}

export async function withController(
  controller: (cluster: TestCluster) => readonly string[],
  use: (world: World) => Promise<void>,
): Promise<void> {
  const { archive } = await controllerImage();
  await withKubernetes({ name: 'prod', nodes: 3, audit: true }, async (cluster) => {
    await cluster.loadImage(archive);
    await cluster.addVolume('state', { gb: 300 });
    const settings = ['high_availability: true', `image: ${controllerImageName}`, ...controller(cluster)].map((line) => `    ${line}`);
    const config = ['serve:', '  controller:', ...settings, `kubernetes: {image: ${debianImage}}`, ''].join('\n');
    // While no controller leads, a command waits for the next leader.
    const options = { env: { KUBECONFIG: cluster.kubeconfig }, timeoutMs: 400_000 };
    await withSvc(async (svc) => {
      writeFileSync(join(svc.home, 'config.yaml'), config);
      await use({ svc, cluster });
    }, options);
  });
}

/** Waits until this many replicas are ready; commands may fail while no controller leads. */
export async function readyReplicas(svc: Svc, replicas: number): Promise<ServiceView> {
  let last: unknown;
  const poll = async (): Promise<ServiceView | false> => {
    try {
      const service = await svc.service('web');
      last = service.replicas.map(({ id, status }) => `${id} ${status}`);
      return service.replicasReady >= replicas && service;
    } catch (error) {
      last = error;
      return false;
    }
  };
  return waitFor(`${replicas} ready replicas`, poll, { everyMs: 500, describe: () => last });
}

/** A service that has scaled to three replicas under the load of the test. */
export async function webService({ svc, cluster }: World): Promise<{ readonly url: string; readonly file: string }> {
  const policy = [
    'min_replicas: 2',
    'max_replicas: 3',
    'target_qps_per_replica: 20',
    'upscale_delay_seconds: 5',
    'downscale_delay_seconds: 600',
  ];
  const template = webFiles(svc, 2, ['  infra: k8s', '  cpus: 0.2+', '  memory: 0.2+']);
  const file = svc.file(
    'web/service.yaml',
    [
      'service:',
      '  readiness_probe: /',
      '  replica_policy:',
      ...policy.map((line) => `    ${line}`),
      'resources: {infra: k8s, ports: 8080, cpus: 0.2+, memory: 0.2+}',
      'workdir: .',
      'run: exec python3 server.py',
      '',
    ].join('\n'),
  );
  expect(file).toBe(template);
  await svc.ok(['serve', 'up', file, '-n', 'web', '--yes']);
  await readyReplicas(svc, 2);
  const { spec } = await cluster.request<{ readonly spec: { readonly clusterIP: string } }>(
    'GET',
    '/api/v1/namespaces/default/services/svc-endpoints',
  );
  return { url: `http://${spec.clusterIP}:30001/`, file };
}

export async function podsWith(cluster: TestCluster, prefix: string): Promise<readonly PodView[]> {
  return (await cluster.pods('default')).filter(({ name }) => name.startsWith(prefix));
}

export const nodeNumber = ({ node = '' }: PodView): number => Number(node.replace('node', ''));

/** Returns the pod of the leader, from the Lease. */
export async function leaderPod(cluster: TestCluster): Promise<PodView | undefined> {
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/svc-controller';
  const { spec } = await cluster.request<{ readonly spec: { readonly holderIdentity: string } }>('GET', path);
  return (await cluster.pods('default')).find(({ name }) => spec.holderIdentity.startsWith(`${name}_`));
}

/**
 * Terminates everything with the user's commands and checks that the cluster is clean. Lost nodes return first, because
 * svc waits for their pods.
 */
export async function downAll({ svc, cluster }: World): Promise<void> {
  for (const node of [1, 2, 3]) if (!(await cluster.isNodeReady(node))) await cluster.startNode(node);
  expect((await svc.run(['controller', 'down', '--yes'])).stderr).toContain('still looks after: web');
  await svc.ok(['serve', 'down', 'web', '--yes']);
  await svc.ok(['controller', 'down', '--yes']);
  // The storage class of the testbed has a name like svc's objects.
  await nothingLeft([cluster], (object) => !object.startsWith('storageclasses.storage.k8s.io '));
}
