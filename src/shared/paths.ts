import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** Linux allows 107 bytes for a socket's path. The longest name that svc uses below the folder takes about 40. */
const longestRuntimeDir = 66;

/** Paths of everything below one SVC_HOME. All paths are absolute. */
export interface HomePaths {
  readonly home: string;
  readonly config: string;
  readonly database: string;
  readonly controllerLog: string;
  readonly controllerSocket: string;
  /** The process of the running controller; see `ProcessIdentity`. */
  readonly controllerIdentity: string;
  /** Link to the program that the controller and its processes run; see `launcher/program-bundle.ts`. */
  readonly program: string;
  /** Exists while no controller runs and none is needed: the last one stopped cleanly and no work was left. */
  readonly idleMark: string;
  /** Exists once the user knows about starts after a reboot: `{"cron": …}`, whether cron does them. */
  readonly bootRecord: string;
  /** Exists while a restore changes the home, and after one that was killed meanwhile: `{"file": …, "staging": …}`. */
  readonly restoreMark: string;
  /** Why the controller could not start, as an `ErrorReply`. A successful start removes it. */
  readonly startError: string;
  /** Short enough for Unix sockets; mode 0700. Below SVC_HOME, or below /tmp if that path is too long. */
  readonly runtimeDir: string;
  /** Until when this machine's processes may act beside rivals; see `controller/leadership/fence-file.ts`. */
  readonly fence: string;
  /** List of the edge proxies for the reconcilers, if any exist. */
  readonly edgeProxies: string;
  /** One folder per service, named by its key, with its versions' files, logs and balancer files. */
  readonly servicesDir: string;
  readonly clustersDir: string;
  /** Used only by the local provider. */
  readonly localDir: string;
  /** The user's own SSH hosts; see `spec/load-ssh-pools.ts`. */
  readonly sshPools: string;
  /** svc's own SSH key, known host keys, and records of machines reached over SSH; mode 0700. */
  readonly sshDir: string;
  /** Price tables that are newer than the built-in ones. */
  readonly catalogDir: string;
  readonly controllerRecord: string;
  /** On a remote controller's machine: facts about that machine; see `domain/remote-controller-info.ts`. */
  readonly controllerHost: string;
  /** Files that clients uploaded for services and clusters that are being deployed; one folder each. */
  readonly uploadsDir: string;
}

/** Pure: creates no folder. */
export function homePaths(home: string, uid: number): HomePaths {
  const inside = join(home, 'run');
  const hash = createHash('sha256').update(home).digest('hex').slice(0, 12);
  const runtimeDir = Buffer.byteLength(inside) <= longestRuntimeDir ? inside : `/tmp/svc-${uid}-${hash}`;
  return {
    home,
    config: join(home, 'config.yaml'),
    database: join(home, 'state.db'),
    controllerLog: join(home, 'controller.log'),
    program: join(home, 'programs/current'),
    idleMark: join(home, 'controller.idle'),
    bootRecord: join(home, 'boot.json'),
    restoreMark: join(home, 'unfinished-restore.json'),
    startError: join(home, 'controller-start-error.json'),
    controllerSocket: join(runtimeDir, 'controller.sock'),
    controllerIdentity: join(runtimeDir, 'controller.identity.json'),
    runtimeDir,
    fence: join(runtimeDir, 'fence.json'),
    edgeProxies: join(runtimeDir, 'balancer-hosts.json'),
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
  /** Locked by the running reconciler. Holds its process identity, which finds a reconciler that does not answer. */
  readonly reconcilerLock: string;
  readonly reconcilerIdentity: string;
  readonly balancerLog: string;
  /** One JSON line per request. */
  readonly accessLog: string;
  /** Prometheus metrics of the balancer over HTTP. */
  readonly metricsSocket: string;
  /** Read by the balancer process at its start; see `domain/balancer-link.ts`. */
  readonly balancerConfig: string;
  /** The balancer's last valid endpoint set. */
  readonly lastReplicas: string;
  readonly balancerSocket: string;
  readonly reconcilerSocket: string;
  /** Copies of a version's working directory and mounts, taken at `up`, so that later replicas are identical. */
  versionDir(version: number): string;
  readonly replicasDir: string;
  provisionLog(replicaId: number): string;
  /** Output of setup and run of one replica. Kept after the machine was terminated. */
  jobLog(replicaId: number): string;
}

/** Paths use the key, not the name: a service deployed again under a name shares nothing with the previous one. */
export function servicePaths(paths: HomePaths, key: string): ServicePaths {
  const dir = join(paths.servicesDir, key);
  return {
    dir,
    reconcilerLog: join(dir, 'reconciler.log'),
    reconcilerLock: join(dir, 'reconciler.lock'),
    reconcilerIdentity: join(dir, 'reconciler.identity.json'),
    balancerLog: join(dir, 'balancer.log'),
    accessLog: join(dir, 'access.log'),
    metricsSocket: join(paths.runtimeDir, `m-${key}.sock`),
    balancerConfig: join(dir, 'balancer.json'),
    lastReplicas: join(dir, 'replicas.json'),
    balancerSocket: join(paths.runtimeDir, `b-${key}.sock`),
    reconcilerSocket: join(paths.runtimeDir, `r-${key}.sock`),
    versionDir: (version) => join(dir, `v${version}`),
    replicasDir: join(dir, 'replicas'),
    provisionLog: (replicaId) => join(dir, 'replicas', `${replicaId}.provision.log`),
    jobLog: (replicaId) => join(dir, 'replicas', `${replicaId}.job.log`),
  };
}
