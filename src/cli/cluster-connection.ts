import type { ApiClient } from '../api/client.ts';
import type { Task } from '../domain/task.ts';
import { uploadsOf } from '../domain/upload-layout.ts';
import { bringFiles } from '../launcher/bring-files.ts';
import { uploadName } from '../launcher/upload-name.ts';
import type { ControllerPlan } from '../launcher/controller-plan.ts';
import { readControllerRecord, type ControllerRecord } from '../launcher/controller-record.ts';
import { differencesInCluster, madeInCluster } from '../launcher/high-availability/differences.ts';
import {
  recorded,
  removeFromCluster,
  restartInCluster,
  startInCluster,
  stopInCluster,
  upgradeInCluster,
  type HighAvailabilityDeps,
} from '../launcher/high-availability/high-availability.ts';
import { checkWishInCluster, planInCluster } from '../launcher/high-availability/plan.ts';
import { clusterOpener } from '../launcher/high-availability/open-cluster.ts';
import { inContainer } from '../launcher/high-availability/names.ts';
import type { ClusterStatus } from '../launcher/high-availability/status.ts';
import type { MachineStatus } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';
import { loadConfig } from '../spec/load-config.ts';
import { ClusterClient } from './cluster-client.ts';
import type { OnStep } from './connection.ts';
import type { Elsewhere } from './elsewhere-connection.ts';
import { openPlaces } from './open-places.ts';

/** What can be done with a controller in a cluster and with no other. */
export interface InCluster {
  status(): Promise<ClusterStatus>;
  /** The one that leads, if it answers now. */
  leading(): Promise<ApiClient | undefined>;
  start(onStep: OnStep): Promise<void>;
  /** Ends the controllers; balancers go on. */
  stop(): Promise<void>;
  restart(onStep: OnStep): Promise<void>;
}

/** Opens what is needed to work with a controller in a cluster; nothing is called yet. */
export function openInCluster(paths: HomePaths, clock: Clock, signal: AbortSignal): Elsewhere {
  const config = (): ReturnType<typeof loadConfig> => loadConfig(paths.config);
  const places = openPlaces(paths, clock);
  const openApi = clusterOpener(clock, systemRandom);
  const depsWith = (onStep: OnStep): HighAvailabilityDeps => ({ paths, places, config, clock, signal, onStep, openApi });
  const silent = depsWith(() => undefined);
  const record = (): ControllerRecord | undefined => readControllerRecord(paths.controllerRecord);

  const client = new ClusterClient(depsWith);
  return {
    client: (onStep) => client.get(onStep),
    clientIfChosen: (onStep) => client.bringUp(onStep),
    running: () => client.running(),
    existing: () => client.existing(),
    async bring(task: Task, source, onStep) {
      if (uploadsOf(task).length === 0) return undefined;
      const remote = await client.leadersRemote(recorded(silent).site);
      const upload = uploadName(source);
      await bringFiles(remote, task, upload, { paths, signal, onStep, home: inContainer.home });
      return upload;
    },
    checkWish: () => checkWishInCluster(silent),
    planWhileHere: async () => undefined,
    plan: (): Promise<ControllerPlan | undefined> => planInCluster(silent),
    record,
    async machine(): Promise<MachineStatus | undefined> {
      const known = record()?.cluster;
      if (known === undefined) return undefined;
      const { state } = await client.status(known);
      return { state: state === 'absent' ? 'booting' : state };
    },
    async differences() {
      const { site, record: known } = recorded(silent);
      return differencesInCluster(await config(), known, await madeInCluster(site, openApi(site), signal));
    },
    upgrade: (onStep) => upgradeInCluster(depsWith(onStep)),
    async remove(purge, onStep) {
      await removeFromCluster(depsWith(onStep), purge);
      return undefined;
    },
    inCluster: {
      status: async () => client.status(recorded(silent).site),
      leading: async () => client.leading(recorded(silent).site),
      start: (onStep) => startInCluster(depsWith(onStep)),
      stop: () => stopInCluster(silent),
      restart: (onStep) => restartInCluster(depsWith(onStep)),
    },
  };
}
