import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubernetesReach } from '../../domain/config.ts';
import type { KubeApi, PodRef } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { MemoryKills, RemoteCallOptions } from '../remote.ts';
import { runCaptured } from '../session/captured.ts';
import { SessionRemote } from '../session/session-remote.ts';
import { forwarderLink } from './forwarder-link.ts';
import { podAddress } from './pod-address.ts';
import { podBaseDir } from './pod-init.ts';
import { PodMachine } from './pod-machine.ts';
import { podMemoryKills } from './pod-memory.ts';
import { PodWays } from './pod-ways.ts';

export { podBaseDir, podCommand } from './pod-init.ts';

/** A program may have a hundred thousand connections, of 150 bytes each. */
const maxTableBytes = 33_554_432;

/** What a remote in a pod is made from. */
export interface KubernetesRemoteSettings {
  /** Of the cluster; asked when it is needed. */
  readonly api: () => Promise<KubeApi>;
  /** The cluster's name in the kubeconfig. */
  readonly context: string;
  readonly pod: PodRef;
  /** Default: podBaseDir. */
  readonly baseDir?: string;
  readonly environment: Readonly<Record<string, string>>;
  /** How requests reach the pod. */
  readonly reach: KubernetesReach;
  readonly paths: HomePaths;
  readonly clock: Clock;
}

/**
 * A pod that is worked on through the API server of its cluster; docs/internals/kubernetes.md tells how. All remotes of a pod in one process share a
 * few sessions. Besides what `Remote` and `KubeApi` say: SVC_HOST_UNFIT when the image lacks what is needed, SVC_NO_SPACE when the pod's disk is full,
 * SVC_PLACE_FAILED when its files could not be worked with.
 */
export class KubernetesRemote extends SessionRemote {
  readonly #settings: KubernetesRemoteSettings;

  constructor(settings: KubernetesRemoteSettings) {
    // A pod is isolation enough.
    super({ ...settings, baseDir: settings.baseDir ?? podBaseDir, enter: [] });
    this.#settings = settings;
  }

  async memoryKills({ signal }: RemoteCallOptions = {}): Promise<MemoryKills | undefined> {
    return podMemoryKills(await this.work(), signal);
  }

  async address(port: number, { signal }: RemoteCallOptions = {}): Promise<ReplicaAddress> {
    const { api, pod, reach, clock } = this.#settings;
    const machine = await this.work();
    return podAddress(port, {
      api: await api(),
      pod,
      reach,
      connectionsInPod: async () => {
        const argv = ['sh', '-c', 'cat /proc/net/tcp /proc/net/tcp6 2> /dev/null'];
        return (await runCaptured(machine, { argv, isRepeatable: true, signal, maxBytes: maxTableBytes })).stdout;
      },
      routes: () => ({ v4: readIfThere('/proc/net/route'), v6: readIfThere('/proc/net/ipv6_route') }),
      forward: () => this.#ways().open(port, signal),
      clock,
      signal,
    });
  }

  async forwardSocket(remotePath: string, { signal }: RemoteCallOptions = {}): Promise<string> {
    return this.#ways().open(remotePath, signal);
  }

  /** Gives back what is kept for the pod here: sessions and ways to its ports. For a pod that is given back; the cluster removes its services with it. */
  async close(): Promise<void> {
    closeMachine(this.#settings);
    await this.#ways().close();
  }

  /** The machine to work on; whoever works on it also keeps the ways to its ports. */
  protected async work(): Promise<PodMachine> {
    this.#ways().keep();
    return podMachine(this.#settings);
  }

  #ways(): PodWays {
    const { paths, context, pod, clock } = this.#settings;
    return new PodWays(forwarderLink(paths, context, clock), context, pod);
  }
}

const machines = new Map<string, PodMachine>();

/** The machine of a pod: one for all remotes of this process, so that they share its sessions and their limits. */
function podMachine({ api, context, pod, paths, clock }: KubernetesRemoteSettings): PodMachine {
  const key = machineKey(context, pod);
  const known = machines.get(key);
  if (known !== undefined) return known;
  const machine = new PodMachine({ api, context, pod, spoolDir: join(paths.home, 'kubernetes', 'spool'), clock });
  machines.set(key, machine);
  return machine;
}

function closeMachine({ context, pod }: KubernetesRemoteSettings): void {
  const key = machineKey(context, pod);
  machines.get(key)?.close();
  machines.delete(key);
}

/** Empty where the system does not tell: then no route is known. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function machineKey(context: string, { namespace, name, container = '' }: PodRef): string {
  return JSON.stringify([context, namespace, name, container]);
}
