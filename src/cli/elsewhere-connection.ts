import type { ApiClient } from '../api/client.ts';
import type { ResourceAlternatives, Task } from '../domain/task.ts';
import { uploadsOf } from '../domain/upload-layout.ts';
import { differencesElsewhere, type ControllerDifference } from '../launcher/controller-differences.ts';
import { machineStatus } from '../launcher/controller-machine.ts';
import { planController, planWhileHere, type ControllerPlan } from '../launcher/controller-plan.ts';
import { existingControllerRecord, readControllerRecord, type ControllerRecord } from '../launcher/controller-record.ts';
import { controllerRemote, removeElsewhere, upgradeElsewhere } from '../launcher/elsewhere.ts';
import type { LauncherDeps } from '../launcher/launcher-deps.ts';
import { bringFiles } from '../launcher/bring-files.ts';
import { controllerHome } from '../launcher/install.ts';
import { uploadName } from '../launcher/upload-name.ts';
import type { MachineStatus } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';
import { loadConfig } from '../spec/load-config.ts';
import type { InCluster } from './cluster-connection.ts';
import type { Connection, OnStep } from './connection.ts';
import { ElsewhereClient } from './elsewhere-client.ts';
import { openPlaces } from './open-places.ts';

/** The controller on another machine, and that machine. */
export interface Elsewhere extends Pick<Connection, 'existing' | 'running'> {
  client(onStep: OnStep): Promise<ApiClient>;
  /** Brings one up when the configuration or the enabled places say that it is to be elsewhere; undefined when it is to be here. */
  clientIfChosen(onStep: OnStep, near: ResourceAlternatives | undefined): Promise<ApiClient | undefined>;
  bring(task: Task, source: string, onStep: OnStep): Promise<string | undefined>;
  /** Throws when the one that the configuration asks for cannot be made; one that is there is used as it is. */
  checkWish(): Promise<void>;
  /** Where it is, or would be; undefined when that is on this machine. */
  plan(near: ResourceAlternatives): Promise<ControllerPlan | undefined>;
  /** What is to be said of a controller that runs on this machine; undefined when nothing is. */
  planWhileHere(): Promise<ControllerPlan | undefined>;
  /** What is recorded of it. */
  record(): ControllerRecord | undefined;
  /** How its machine is, asked of the place; undefined when none was given yet. */
  machine(): Promise<MachineStatus | undefined>;
  /** Where it contradicts the configuration as it is now. */
  differences(): Promise<readonly ControllerDifference[]>;
  upgrade(onStep: OnStep): Promise<{ readonly isNew: boolean }>;
  /** Gives its machine back; with `purge`, the machine that did not answer and may be there still. */
  remove(purge: boolean, onStep: OnStep): Promise<string | undefined>;
  /** Of one in a cluster, which survives its machine; absent where it is one program on one machine. */
  readonly inCluster?: InCluster;
}

/** Opens what is needed to work with a controller elsewhere; nothing is called yet. */
export function openElsewhere(paths: HomePaths, clock: Clock, signal: AbortSignal): Elsewhere {
  const config = (): ReturnType<typeof loadConfig> => loadConfig(paths.config);
  const places = openPlaces(paths, clock);
  const depsWith = (onStep: OnStep): LauncherDeps => ({ paths, places, config, clock, signal, onStep });
  const silent = depsWith(() => undefined);
  const record = (): ControllerRecord | undefined => readControllerRecord(paths.controllerRecord);
  const client = new ElsewhereClient(depsWith);
  return {
    client: (onStep) => client.get(onStep),
    clientIfChosen: (onStep, near) => client.ifChosen(onStep, near),
    running: () => client.running(),
    existing: () => client.existing(),
    async bring(task, source, onStep) {
      const remote = await controllerRemote(silent);
      if (remote === undefined || uploadsOf(task).length === 0) return undefined;
      const upload = uploadName(source);
      await bringFiles(remote, task, upload, { paths, signal, onStep, home: controllerHome(remote) });
      return upload;
    },
    // Which machine it gets is found out when it is planned.
    checkWish: async () => undefined,
    planWhileHere: () => planWhileHere(config),
    plan: (near) => planController(record(), near, silent),
    record,
    machine: () => machineStatus(existingControllerRecord(paths.controllerRecord), silent),
    async differences() {
      const known = record();
      return known === undefined || known.place === null ? [] : differencesElsewhere(await config(), known);
    },
    upgrade: (onStep) => upgradeElsewhere(depsWith(onStep)),
    remove: (purge, onStep) => removeElsewhere(depsWith(onStep), purge),
  };
}
