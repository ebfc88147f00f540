import { posix } from 'node:path';
import type { Config } from '../domain/config.ts';
import { chooseController, type ControllerChoice } from '../domain/controller-placement.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import { assertMachineId } from '../providers/provider.ts';
import { destroyMachine } from '../provision/machine.ts';
import type { Remote } from '../remote/remote.ts';
import { SvcError } from '../shared/errors.ts';
import { homePaths } from '../shared/paths.ts';
import { randomHex } from '../shared/random-hex.ts';
import { controllerMachine, lostMachine, machineStatus, type MachineDeps, type ControllerMachine } from './controller-machine.ts';
import {
  freshControllerRecord,
  readControllerRecord,
  removeControllerRecord,
  writeControllerRecord,
  type ControllerRecord,
} from './controller-record.ts';
import {
  controllerHome,
  forgetAtBoot,
  installController,
  programFingerprint,
  startAtBoot,
  startController,
  stopController,
} from './install.ts';
import { leaving, locked, noteIn, type LauncherDeps } from './launcher-deps.ts';
import { goneTimeoutMs, releaseWhenFree, removeLeftovers } from './leftovers.ts';
import { controllerSettings, type ControllerSettings } from './settings.ts';

/** What a configuration asks for, to find out later whether it has changed. */
export function wishOf({ serve }: Config): string {
  return JSON.stringify(serve.controller.resources ?? null);
}

/** Where a new controller would be, given the configuration, the places that are enabled, and what the service that needs it asks for. */
export async function choosePlace(
  { config, places }: Pick<LauncherDeps, 'config' | 'places'>,
  near?: ResourceAlternatives,
): Promise<ControllerChoice> {
  const configured = (await config()).serve.controller.resources;
  if (configured?.choices.every(({ cloud }) => cloud === 'local') === true) return { kind: 'here' };
  const enabled = (await places.providers()).map(({ name }) => name);
  return chooseController(configured, enabled, near);
}

/**
 * Makes sure that the controller runs on its machine, which is got and furnished when there is none and started when it was stopped, and opens a way
 * to it. Gives the socket here that leads to its API. Safe to repeat, and to interrupt: the next call goes on where this one stopped.
 */
export async function ensureElsewhere(alternatives: ResourceAlternatives, deps: LauncherDeps): Promise<string> {
  return locked(deps, async () => {
    const record = readControllerRecord(deps.paths.controllerRecord) ?? (await newRecord(deps));
    if (record.isLeaving) throw leaving();
    const machine = await controllerMachine(record, alternatives, machineDeps(deps));
    const remote = machine.provider.remote(machine.id);
    const isFurnished = readControllerRecord(deps.paths.controllerRecord)?.program !== null;
    if (!isFurnished) {
      const settings = await settingsFor(record, machine, remote, deps);
      await installController(remote, settings, deps);
      const boot = await startAtBoot(remote, deps.signal);
      const { publicHost } = settings.host;
      noteIn(deps)({ program: programFingerprint(), boot, publicHost, socket: await apiSocket(remote, deps.signal) });
    }
    deps.onStep('Starting the controller');
    await startController(remote, deps.signal);
    return wayTo(remote, deps);
  });
}

/** How to work on the controller's machine; undefined while there is none. No call is made. */
export async function controllerRemote({ paths, places }: Pick<LauncherDeps, 'paths' | 'places'>): Promise<Remote | undefined> {
  const record = readControllerRecord(paths.controllerRecord);
  if (record === undefined || record.place === null || record.machineId === null) return undefined;
  assertMachineId(record.machineId);
  return (await places.provider(record.place.provider)).remote(record.machineId);
}

/**
 * A way to the controller if its machine is up; undefined when that is stopped, or was never there. Throws SVC_MACHINE_LOST when the machine is gone.
 */
export async function reachElsewhere(deps: LauncherDeps): Promise<string | undefined> {
  const record = readControllerRecord(deps.paths.controllerRecord);
  if (record === undefined || record.place === null || record.machineId === null || record.socket === null) return undefined;
  const provider = await deps.places.provider(record.place.provider);
  const status = await machineStatus(record, deps);
  if (status === undefined || status.state === 'gone') throw lostMachine(provider, record.machineId);
  if (status.state !== 'running') return undefined;
  assertMachineId(record.machineId);
  return wayTo(provider.remote(record.machineId), deps);
}

/** Puts the program of this checkout in the place of the one that the controller runs; services go on, and no request is lost. */
export async function upgradeElsewhere(deps: LauncherDeps): Promise<{ readonly isNew: boolean }> {
  return locked(deps, async () => {
    const record = readControllerRecord(deps.paths.controllerRecord);
    if (record === undefined || record.machineId === null)
      throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'There is no controller on another machine.');
    const machine = await controllerMachine(record, { order: 'any', choices: [] }, machineDeps(deps));
    const remote = machine.provider.remote(machine.id);
    const settings = await settingsFor(record, machine, remote, deps);
    const program = await installController(remote, settings, deps);
    noteIn(deps)({ program, publicHost: settings.host.publicHost });
    deps.onStep('Starting the controller anew');
    await stopController(remote, deps.signal);
    await startController(remote, deps.signal);
    return { isNew: program !== record.program };
  });
}

/**
 * Gives the machine of the controller back, and forgets it. Whether services still need it is for the caller to know. `purge`: also when its host
 * does not answer, and everything that its services left in any place. Gives the machine that could not be removed for that reason.
 */
export async function removeElsewhere(deps: LauncherDeps, purge: boolean): Promise<string | undefined> {
  return locked(deps, async () => {
    const record = readControllerRecord(deps.paths.controllerRecord);
    if (record === undefined) return undefined;
    noteIn(deps)({ isLeaving: true });
    let left: string | undefined;
    try {
      await removeMachines(record, deps);
    } catch (error) {
      // A host that is gone for good is never heard of again, and must not keep the rest from being removed.
      if (!purge || !(error instanceof SvcError) || error.code !== 'SVC_SSH') throw error;
      left = record.machineId ?? record.place?.region;
    }
    if (purge) await removeLeftovers(record.key, deps);
    removeControllerRecord(deps.paths.controllerRecord);
    return left;
  });
}

async function removeMachines(record: ControllerRecord, deps: LauncherDeps): Promise<void> {
  if (record.place === null) return;
  const provider = await deps.places.provider(record.place.provider);
  const machines = await provider.list({ 'svc-controller': record.key }, { signal: deps.signal });
  for (const { id } of machines) {
    deps.onStep(`Removing machine ${id}`);
    // A machine that cannot be worked on any more is removed all the same.
    await leaveMachine(provider.remote(id), record, deps.signal).catch(() => undefined);
    await destroyMachine(provider, id, deps.clock, goneTimeoutMs, deps.signal);
  }
  await releaseWhenFree(provider, record.key, deps);
}

/** What would stay on a host that goes on when its machine is removed. */
async function leaveMachine(remote: Remote, { socket }: ControllerRecord, signal: AbortSignal): Promise<void> {
  await stopController(remote, signal);
  await forgetAtBoot(remote, signal);
  const runtimeDir = socket === null ? undefined : posix.dirname(socket);
  if (runtimeDir?.startsWith('/tmp/svc-') === true) await remote.exec(['rm', '-rf', runtimeDir], { signal });
}

/** What the controller of a machine is to have, as things are now. */
async function settingsFor(
  { key }: ControllerRecord,
  machine: ControllerMachine,
  remote: Remote,
  { places, paths, signal }: LauncherDeps,
): Promise<ControllerSettings> {
  return controllerSettings(key, machine, controllerHome(remote), await places.states(), paths, signal);
}

async function newRecord(deps: LauncherDeps): Promise<ControllerRecord> {
  const wished = wishOf(await deps.config());
  const record = freshControllerRecord({ key: randomHex(8), wished, createdAt: deps.clock.now() });
  writeControllerRecord(deps.paths.controllerRecord, record);
  return record;
}

async function apiSocket(remote: Remote, signal: AbortSignal): Promise<string> {
  const { stdout } = await remote.exec(['id', '-u'], { signal });
  return homePaths(controllerHome(remote), Number(stdout)).controllerSocket;
}

async function wayTo(remote: Remote, { paths, signal }: LauncherDeps): Promise<string> {
  const { socket } = readControllerRecord(paths.controllerRecord) ?? {};
  if (socket === null || socket === undefined) throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller is not there yet.');
  return remote.forwardSocket(socket, { signal });
}

function machineDeps(deps: LauncherDeps): MachineDeps {
  const { places, clock, signal, onStep } = deps;
  return { places, clock, signal, onStep, note: noteIn(deps) };
}
