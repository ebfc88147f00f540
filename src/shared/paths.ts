import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** Linux allows 107 bytes for a socket's path; the longest name we put below the folder takes about 40. */
const longestRuntimeDir = 66;

/** Where everything lives below one SVC_HOME. All paths are absolute. */
export interface HomePaths {
  readonly home: string;
  readonly config: string;
  readonly database: string;
  readonly controllerLog: string;
  readonly controllerSocket: string;
  /** There while no controller runs and nothing needs one: the last one stopped cleanly with nothing left. */
  readonly idleMark: string;
  /** Why the controller could not be started, as an `ErrorReply`; gone after a good start. */
  readonly startError: string;
  /** Short enough for Unix sockets; mode 0700. Below SVC_HOME unless that is too long, then below /tmp. */
  readonly runtimeDir: string;
  /** Until when this machine's processes may act, where controllers have rivals; see `controller/leadership/fence-file.ts`. */
  readonly fence: string;
  /** Where the reconcilers find the balancer hosts, where there are any. */
  readonly balancerHosts: string;
  /** One folder per service, named by its key: its versions' files, logs, balancer files. */
  readonly servicesDir: string;
  readonly clustersDir: string;
  /** Of the local provider alone. */
  readonly localDir: string;
  /** Hosts of the user's own; see `spec/ssh-pools.ts`. */
  readonly sshPools: string;
  /** Our own SSH key, known host keys, and records of machines reached over SSH; mode 0700. */
  readonly sshDir: string;
  /** Tables of prices that are newer than the built-in ones. */
  readonly catalogDir: string;
  /** Where the controller is when it is not on this machine. */
  readonly controllerRecord: string;
  /** On the controller's own machine, when that was chosen for it: what it must know of it; see `domain/controller-host.ts`. */
  readonly controllerHost: string;
  /** What clients brought for services and clusters that are being put up; one folder each. */
  readonly uploadsDir: string;
}

/** Pure: no folder is made here. */
export function homePaths(home: string, uid: number): HomePaths {
  const inside = join(home, 'run');
  const hash = createHash('sha256').update(home).digest('hex').slice(0, 12);
  const runtimeDir = Buffer.byteLength(inside) <= longestRuntimeDir ? inside : `/tmp/svc-${uid}-${hash}`;
  return {
    home,
    config: join(home, 'config.yaml'),
    database: join(home, 'state.db'),
    controllerLog: join(home, 'controller.log'),
    idleMark: join(home, 'controller.idle'),
    startError: join(home, 'controller-start-error.json'),
    controllerSocket: join(runtimeDir, 'controller.sock'),
    runtimeDir,
    fence: join(runtimeDir, 'fence.json'),
    balancerHosts: join(runtimeDir, 'balancer-hosts.json'),
    servicesDir: join(home, 'services'),
    clustersDir: join(home, 'clusters'),
    localDir: join(home, 'local'),
    sshPools: join(home, 'ssh_pools.yaml'),
    sshDir: join(home, 'ssh'),
    catalogDir: join(home, 'catalog'),
    controllerRecord: join(home, 'controller.json'),
    controllerHost: join(home, 'host.json'),
    uploadsDir: join(home, 'uploads'),
  };
}

/** Files of one service. */
export interface ServicePaths {
  readonly dir: string;
  readonly reconcilerLog: string;
  readonly balancerLog: string;
  /** JSON line per request. */
  readonly accessLog: string;
  /** Prometheus metrics of the balancer over HTTP. */
  readonly metricsSocket: string;
  /** What the balancer process reads at its start; see `domain/balancer-link.ts`. */
  readonly balancerConfig: string;
  /** The balancer's last good replica set. */
  readonly lastReplicas: string;
  readonly balancerSocket: string;
  readonly reconcilerSocket: string;
  /** Everything that was copied for one version. */
  versionDir(version: number): string;
  /** A private copy of the task's workdir, taken at `up`, so that later replicas are identical. */
  workdirSnapshot(version: number): string;
  /** Copies of the task's file mounts, numbered in the file's order. */
  mountSnapshot(version: number): string;
  /** Provisioning lines of one replica. */
  provisionLog(replicaId: number): string;
  /** Output of setup and run of one replica; stays after the machine is gone. */
  jobLog(replicaId: number): string;
}

/** Pure. By key, not by name: a service put up again under a name shares nothing with the one before. */
export function servicePaths(paths: HomePaths, key: string): ServicePaths {
  const dir = join(paths.servicesDir, key);
  return {
    dir,
    reconcilerLog: join(dir, 'reconciler.log'),
    balancerLog: join(dir, 'balancer.log'),
    accessLog: join(dir, 'access.log'),
    metricsSocket: join(paths.runtimeDir, `m-${key}.sock`),
    balancerConfig: join(dir, 'balancer.json'),
    lastReplicas: join(dir, 'replicas.json'),
    balancerSocket: join(paths.runtimeDir, `b-${key}.sock`),
    reconcilerSocket: join(paths.runtimeDir, `r-${key}.sock`),
    versionDir: (version) => join(dir, `v${version}`),
    workdirSnapshot: (version) => join(dir, `v${version}`, 'workdir'),
    mountSnapshot: (version) => join(dir, `v${version}`, 'mounts'),
    provisionLog: (replicaId) => join(dir, 'replicas', `${replicaId}.provision.log`),
    jobLog: (replicaId) => join(dir, 'replicas', `${replicaId}.job.log`),
  };
}
