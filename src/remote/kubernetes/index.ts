import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubernetesReach } from '../../domain/config.ts';
import type { KubeApi, PodRef } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import { getOrAdd } from '../../shared/get-or-add.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { readIfThere } from '../../shared/system/files.ts';
import type { MemoryKills, RemoteCallOptions } from '../remote.ts';
import { runCaptured } from '../session/captured.ts';
import { SessionRemote } from '../session/session-remote.ts';
import type { Tunnels } from '../tunnels.ts';
import { podTunnels } from './forwarder-link.ts';
import { podAddress } from './pod-address.ts';
import { PodMachine } from './pod-machine.ts';
import { workFolder } from '../../domain/kubernetes/pod-config.ts';
import { programFile } from '../../shared/program-files.ts';
import type { SessionMachine } from '../session/session-machine.ts';

const podBaseDir = `${workFolder}/replica`;

/** The container's command. It passes process 1 of the pod as text, so that any image with a shell works. */
export function podCommand(): readonly string[] {
  const script = readFileSync(programFile('src/node/pod-init.sh'), 'utf8').replaceAll(/^\s*#.*\n/gm, '');
  return ['/bin/sh', '-c', literally(script), 'svc', podBaseDir];
}

/** Escapes for Kubernetes, which expands `$(NAME)` in a container's command and turns `$$` into `$`. */
function literally(text: string): string {
  return text.replaceAll('$', '$$$$');
}

/** A program may have a hundred thousand connections, of 150 bytes each. */
const maxTableBytes = 33_554_432;

interface KubernetesRemoteSettings {
  readonly api: () => Promise<KubeApi>;
  readonly context: string;
  readonly pod: PodRef;
  readonly baseDir?: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly reach: KubernetesReach;
  readonly paths: HomePaths;
  readonly clock: Clock;
}

/**
 * Works on a pod through its API server (docs/internals/kubernetes.md). All remotes of a pod in one process share a few
 * sessions. Besides the errors of `Remote` and `KubeApi`:
 * - SVC_HOST_UNFIT: the image lacks a needed tool.
 * - SVC_NO_SPACE: the pod's disk is full.
 * - SVC_PLACE_FAILED: work on its files failed.
 */
export class KubernetesRemote extends SessionRemote {
  readonly #settings: KubernetesRemoteSettings;

  constructor(settings: KubernetesRemoteSettings) {
    // A pod needs no further isolation.
    super({ ...settings, baseDir: settings.baseDir ?? podBaseDir, enter: [] });
    this.#settings = settings;
  }

  async memoryKills({ signal }: RemoteCallOptions = {}): Promise<MemoryKills | undefined> {
    return podMemoryKills(await this.work(), signal);
  }

  async connections({ signal }: RemoteCallOptions = {}): Promise<string> {
    const argv = ['sh', '-c', 'cat /proc/net/tcp /proc/net/tcp6 2> /dev/null'];
    return (await runCaptured(await this.work(), { argv, isRepeatable: true, signal, maxBytes: maxTableBytes })).stdout;
  }

  async address(port: number, { signal }: RemoteCallOptions = {}): Promise<ReplicaAddress> {
    const { api, pod, reach, clock } = this.#settings;
    return podAddress(port, {
      api: await api(),
      pod,
      reach,
      connectionsInPod: () => this.connections(signal === undefined ? {} : { signal }),
      routes: () => ({ v4: readIfThere('/proc/net/route'), v6: readIfThere('/proc/net/ipv6_route') }),
      forward: () => this.#tunnels().open(port, signal),
      clock,
      signal,
    });
  }

  async forwardSocket(remotePath: string, { signal }: RemoteCallOptions = {}): Promise<string> {
    return this.#tunnels().open(remotePath, signal);
  }

  /** Releases the sessions and tunnels of a pod that is being terminated. Kubernetes removes its Services with it. */
  async close(): Promise<void> {
    closeMachine(this.#settings);
    await this.#tunnels().close();
  }

  /** Each call also keeps the tunnels open. */
  protected async work(): Promise<PodMachine> {
    this.#tunnels().keep();
    return podMachine(this.#settings);
  }

  #tunnels(): Tunnels {
    const { paths, context, pod, clock } = this.#settings;
    return podTunnels(pod, context, paths, clock);
  }
}

const machines = new Map<string, PodMachine>();

/** One machine per pod for all remotes of this process: they share its sessions and their limits. */
function podMachine({ api, context, pod, paths, clock }: KubernetesRemoteSettings): PodMachine {
  const spoolDir = join(paths.home, 'kubernetes', 'spool');
  return getOrAdd(machines, machineKey(context, pod), () => new PodMachine({ api, context, pod, spoolDir, clock }));
}

function closeMachine({ context, pod }: KubernetesRemoteSettings): void {
  const key = machineKey(context, pod);
  machines.get(key)?.close();
  machines.delete(key);
}

function machineKey(context: string, { namespace, name, container = '' }: PodRef): string {
  return JSON.stringify([context, namespace, name, container]);
}

/** Reads the container's control group, of cgroup version 2 or 1. */
const script = `cd /sys/fs/cgroup 2> /dev/null || exit 0
cat memory.events memory/memory.oom_control 2> /dev/null
for file in memory.max memory/memory.limit_in_bytes; do
  [ ! -r "$file" ] || echo "limit $(cat "$file")"
done`;

/** Larger values mean no limit: version 1 reports the largest number. */
const noLimitBytes = 2 ** 60;

async function podMemoryKills(machine: SessionMachine, signal: AbortSignal | undefined): Promise<MemoryKills | undefined> {
  const { stdout } = await runCaptured(machine, { argv: ['sh', '-c', script], isRepeatable: true, signal });
  return parseMemoryKills(stdout);
}

/** Undefined where the system does not count. Pure. */
export function parseMemoryKills(text: string): MemoryKills | undefined {
  const numberOf = (name: string): number | undefined => {
    const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const kills = numberOf('oom_kill');
  if (kills === undefined) return undefined;
  const limitBytes = numberOf('limit');
  return { kills, ...(limitBytes === undefined || limitBytes >= noLimitBytes ? {} : { limitBytes }) };
}
