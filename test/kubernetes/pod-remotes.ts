import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import type { KubernetesReach } from '../../src/domain/config.ts';
import type { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { workFolder } from '../../src/domain/kubernetes/pod-config.ts';
import { KubernetesRemote, podCommand } from '../../src/remote/kubernetes/index.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { homePaths, type HomePaths } from '../../src/shared/paths.ts';
import { prepareHome } from '../../src/shared/system/prepare-home.ts';
import { openTestKubeApi } from '../support/kubernetes-provider.ts';
import { debianImage, type TestCluster } from '../support/kubernetes.ts';
import { killProcessesOf } from '../support/leaks.ts';
import { makeTempHome } from '../support/temp-home.ts';

/** Options of a pod. */
export interface PodOptions {
  readonly image?: string;
  /** A non-root user, write access to the volume only, no privileges. */
  readonly isTight?: boolean;
  readonly memory?: string;
}

let pods = 0;

/** Starts a pod like a replica's; it is removed when the test ends. Returns its name. */
export async function startPod(cluster: TestCluster, { image = debianImage, isTight = false, memory }: PodOptions = {}): Promise<string> {
  pods += 1;
  const name = `svc-pod-${process.pid}-${pods}`;
  const container = {
    name: 'main',
    image,
    command: podCommand(),
    volumeMounts: [{ name: 'svc', mountPath: workFolder }],
    ...(memory === undefined ? {} : { resources: { limits: { memory } } }),
    ...(isTight
      ? { securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }
      : {}),
  };
  await cluster.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { 'svc-key': name, 'svc-rank': '0' } },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      volumes: [{ name: 'svc', emptyDir: {} }],
      containers: [container],
      ...(isTight ? { securityContext: { runAsUser: 1_000, runAsGroup: 1_000, fsGroup: 1_000 } } : {}),
    },
  });
  onTestFinished(async () => void (await cluster.kubectl('delete', 'pod', name, '--wait=false', '--ignore-not-found')));
  await cluster.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s');
  return name;
}

/** Creates a home whose forwarders know the cluster; removed when the test ends. */
export function aHome(cluster: TestCluster): HomePaths {
  const home = makeTempHome();
  const paths = homePaths(join(home, 'svc'), process.getuid?.() ?? 0);
  prepareHome(paths);
  vi.stubEnv('KUBECONFIG', cluster.kubeconfig);
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await killProcessesOf(paths.home);
    rmSync(home, { recursive: true, force: true });
  });
  return paths;
}

/** Options of a pod's remote. */
export interface RemoteOptions {
  readonly paths: HomePaths;
  readonly reach?: KubernetesReach;
  readonly api?: KubeApi;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Opens a pod's remote as the program does. */
export function openPod(
  cluster: TestCluster,
  name: string,
  { paths, reach = 'auto', api, environment = {} }: RemoteOptions,
): KubernetesRemote {
  const own = api ?? openTestKubeApi(cluster);
  const remote = new KubernetesRemote({
    api: () => Promise.resolve(own),
    context: cluster.context,
    pod: { namespace: 'default', name },
    environment,
    reach,
    paths,
    clock: systemClock,
  });
  onTestFinished(() => remote.close());
  return remote;
}
