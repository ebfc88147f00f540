import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { createClient, type ApiClient } from '../api/client.ts';
import type { ResourceAlternatives, Task } from '../domain/task.ts';
import { uploadsOf } from '../domain/upload-layout.ts';
import { machineStatus } from '../launcher/controller-machine.ts';
import { planController, planWhileHere, type ControllerPlan } from '../launcher/controller-plan.ts';
import { readControllerRecord, type ControllerRecord } from '../launcher/controller-record.ts';
import {
  choosePlace,
  controllerRemote,
  ensureElsewhere,
  reachElsewhere,
  removeElsewhere,
  upgradeElsewhere,
  type LauncherDeps,
} from '../launcher/elsewhere.ts';
import { bringFiles } from '../launcher/bring-files.ts';
import type { MachineStatus } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import { randomHex } from '../shared/random-hex.ts';
import { loadConfig } from '../spec/load-config.ts';
import type { Connection, OnStep } from './connection.ts';
import { probe } from './here-connection.ts';
import { openPlaces } from './open-places.ts';

/** The controller on another machine, and that machine. */
export interface Elsewhere extends Pick<Connection, 'existing' | 'running'> {
  client(onStep: OnStep): Promise<ApiClient>;
  /** Brings one up when the configuration or the enabled places say that it is to be elsewhere; undefined when it is to be here. */
  clientIfChosen(onStep: OnStep, near: ResourceAlternatives | undefined): Promise<ApiClient | undefined>;
  bring(task: Task, source: string, onStep: OnStep): Promise<string | undefined>;
  /** Where it is, or would be; undefined when that is on this machine. */
  plan(near: ResourceAlternatives): Promise<ControllerPlan | undefined>;
  /** What is to be said of a controller that runs on this machine; undefined when nothing is. */
  planWhileHere(): Promise<ControllerPlan | undefined>;
  /** What is recorded of it. */
  record(): ControllerRecord | undefined;
  /** How its machine is, asked of the place; undefined when none was given yet. */
  machine(): Promise<MachineStatus | undefined>;
  upgrade(onStep: OnStep): Promise<{ readonly isNew: boolean }>;
  /** Gives its machine back; with `purge`, the machine that did not answer and may be there still. */
  remove(purge: boolean, onStep: OnStep): Promise<string | undefined>;
}

/** How long a controller on a machine that runs may take to answer, ms: it may just be starting with many services. */
const answerTimeoutMs = 60_000;
const pollMs = 250;

/** Opens what is needed to work with a controller elsewhere; nothing is called yet. */
export function openElsewhere(paths: HomePaths, clock: Clock, signal: AbortSignal): Elsewhere {
  const config = (): ReturnType<typeof loadConfig> => loadConfig(paths.config);
  const places = openPlaces(paths, clock);
  const depsWith = (onStep: OnStep): LauncherDeps => ({ paths, places, config, clock, signal, onStep });
  const silent = depsWith(() => undefined);
  const record = (): ControllerRecord | undefined => readControllerRecord(paths.controllerRecord);
  const clientOf = (socketPath: string): ApiClient => createClient({ socketPath, clock, signal });

  /** Over the way that is known, without asking the place: what nearly every command needs. */
  async function quick(): Promise<ApiClient | undefined> {
    const remote = await controllerRemote(silent);
    const socket = record()?.socket;
    if (remote === undefined || socket === undefined || socket === null) return undefined;
    try {
      const api = clientOf(await remote.forwardSocket(socket, { signal }));
      return (await probe(api)) === undefined ? undefined : api;
    } catch (error) {
      signal.throwIfAborted();
      // Whatever it was: what is to be done about it depends on how the machine is.
      if (error instanceof SvcError && ['SVC_VERSION_MISMATCH', 'SVC_HOST_KEY'].includes(error.code)) throw error;
      return undefined;
    }
  }

  async function untilAnswering(socketPath: string): Promise<ApiClient> {
    const api = clientOf(socketPath);
    const deadline = clock.monotonic() + answerTimeoutMs;
    while ((await probe(api).catch(() => undefined)) === undefined) {
      if (clock.monotonic() > deadline) {
        const where = record()?.place;
        const name = where === undefined || where === null ? '' : ` at ${where.provider}/${where.region}`;
        throw new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller${name} does not answer within ${answerTimeoutMs / 1_000} s.`, {
          hint: 'Run the command again. To put the program there anew: svc controller upgrade',
        });
      }
      await clock.sleep(pollMs, signal);
      signal.throwIfAborted();
    }
    return api;
  }

  async function bringUp(alternatives: Parameters<typeof ensureElsewhere>[0], onStep: OnStep): Promise<ApiClient> {
    return untilAnswering(await ensureElsewhere(alternatives, depsWith(onStep)));
  }

  async function client(onStep: OnStep): Promise<ApiClient> {
    const known = await quick();
    if (known !== undefined) return known;
    const choice = await choosePlace(silent);
    // A machine that was asked for is gone on with, whatever the configuration says by now.
    return bringUp(choice.kind === 'here' ? { order: 'any', choices: [] } : choice.alternatives, onStep);
  }

  async function running(): Promise<ApiClient | undefined> {
    const known = await quick();
    if (known !== undefined) return known;
    const socket = await reachElsewhere(silent);
    if (socket === undefined) return undefined;
    const api = clientOf(socket);
    return (await probe(api)) === undefined ? undefined : api;
  }

  return {
    client,
    async clientIfChosen(onStep, near) {
      const choice = await choosePlace(silent, near);
      return choice.kind === 'here' ? undefined : bringUp(choice.alternatives, onStep);
    },
    running,
    async existing() {
      const known = await quick();
      if (known !== undefined) return known;
      // One whose machine was stopped had nothing left to look after.
      const status = await machineStatus(record() ?? noRecord(), silent);
      return status?.state === 'running' ? client(() => undefined) : undefined;
    },
    async bring(task, source, onStep) {
      const remote = await controllerRemote(silent);
      if (remote === undefined || uploadsOf(task).length === 0) return undefined;
      const origin = createHash('sha256').update(`${hostname()}\0${source}`).digest('hex').slice(0, 16);
      const upload = `${origin}-${randomHex(8)}`;
      await bringFiles(remote, task, upload, { paths, signal, onStep });
      return upload;
    },
    planWhileHere: () => planWhileHere(config),
    plan: (near) => planController(record(), near, silent),
    record,
    machine: () => machineStatus(record() ?? noRecord(), silent),
    upgrade: (onStep) => upgradeElsewhere(depsWith(onStep)),
    remove: (purge, onStep) => removeElsewhere(depsWith(onStep), purge),
  };
}

function noRecord(): never {
  throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'There is no controller on another machine.');
}
