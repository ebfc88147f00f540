import { posix } from 'node:path';
import type { Config } from '../domain/config.ts';
import { chooseController, type ControllerChoice } from '../domain/controller-placement.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import { assertMachineId } from '../providers/provider.ts';
import { goneTimeoutMs, releaseWhenFree, removeEverywhere } from '../provision/left-machines.ts';
import { listClaimed } from '../provision/recorded-machines.ts';
import { destroyMachine } from '../provision/machine.ts';
import { askProviders, settledStates, type ProviderState } from '../provision/providers.ts';
import type { Remote } from '../remote/remote.ts';
import { SvcError } from '../shared/errors.ts';
import { homePaths } from '../shared/paths.ts';
import { randomHex } from '../shared/hex.ts';
import { controllerMachine, lostMachine, machineStatus, type MachineDeps, type RunningControllerMachine } from './controller-machine.ts';
import {
  freshControllerRecord,
  readControllerRecord,
  removeControllerRecord,
  removeIfUnrequested,
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
import { terminatingError, locked, recordPatcher, type LauncherDeps } from './launcher-deps.ts';
import { controllerSettings, type ControllerSettings } from './settings.ts';

/** The configured resources as text, to detect later changes. */
export function requestedResourcesOf({ serve }: Config): string {
  return JSON.stringify(serve.controller.resources ?? null);
}

const isEnabled = ({ provider }: ProviderState): boolean => provider !== undefined;

/** Where a new controller would be. `near`: the resources of the service that needs it. */
export async function chooseControllerMachine(
  { config, providers, onStep, signal }: Pick<LauncherDeps, 'config' | 'providers'> & Partial<Pick<LauncherDeps, 'onStep' | 'signal'>>,
  near?: ResourceAlternatives,
): Promise<ControllerChoice> {
  const configured = (await config()).serve.controller.resources;
  if (configured?.choices.every(({ cloud }) => cloud === 'local') === true) return { kind: 'local' };
  const choose = (states: readonly ProviderState[], isUsed: (state: ProviderState) => boolean): ControllerChoice =>
    chooseController(
      configured,
      states.filter(isUsed).map(({ name }) => name),
      near,
    );
  // Waits for a slow provider that would change the result; otherwise the controller would be local by mistake.
  const { answer } = await askProviders(
    () => providers.states(),
    (states) => choose(states, isEnabled),
    ({ kind }, states) => kind === choose(states, (state) => isEnabled(state) || state.late !== undefined).kind,
    { onWait: onStep, signal },
  );
  return answer;
}

/**
 * Makes sure that the controller runs on its machine: creates, sets up or starts the machine. Returns a local socket
 * that leads to the controller's API. Safe to repeat and to interrupt.
 */
export async function ensureRemoteController(alternatives: ResourceAlternatives, deps: LauncherDeps): Promise<string> {
  return locked(deps, async () => {
    const record = readControllerRecord(deps.paths.controllerRecord) ?? (await newRecord(deps));
    if (record.isTerminating) throw terminatingError();
    const machine = await controllerMachine(record, alternatives, machineDeps(deps)).catch((error: unknown) => {
      // No provider was called: the next command starts from the beginning.
      removeIfUnrequested(deps.paths.controllerRecord);
      throw error;
    });
    const remote = machine.provider.remote(machine.id);
    const isInstalled = readControllerRecord(deps.paths.controllerRecord)?.program !== null;
    if (!isInstalled) {
      const settings = await settingsFor(record, machine, remote, deps);
      await installController(remote, settings, deps);
      const boot = await startAtBoot(remote, deps.signal);
      const { publicHost } = settings.host;
      recordPatcher(deps)({ program: programFingerprint(), boot, publicHost, socket: await apiSocket(remote, deps.signal) });
    }
    deps.onStep('Starting the controller');
    await startController(remote, deps.signal);
    return openTunnel(remote, deps);
  });
}

/** Undefined when the controller has no machine. Makes no call. */
export async function controllerRemote({ paths, providers }: Pick<LauncherDeps, 'paths' | 'providers'>): Promise<Remote | undefined> {
  const record = readControllerRecord(paths.controllerRecord);
  if (record === undefined || record.machine === null || record.machineId === null) return undefined;
  assertMachineId(record.machineId);
  return (await providers.provider(record.machine.provider)).remote(record.machineId);
}

/** Opens a tunnel. Undefined when the machine is stopped or never existed. Throws SVC_MACHINE_LOST when it is gone. */
export async function reachRemoteController(deps: LauncherDeps): Promise<string | undefined> {
  const record = readControllerRecord(deps.paths.controllerRecord);
  if (record === undefined || record.machine === null || record.machineId === null || record.socket === null) return undefined;
  const provider = await deps.providers.provider(record.machine.provider);
  const status = await machineStatus(record, deps);
  if (status === undefined || status.state === 'gone') throw lostMachine(provider, record.machineId);
  if (status.state !== 'running') return undefined;
  assertMachineId(record.machineId);
  return openTunnel(provider.remote(record.machineId), deps);
}

/** Replaces the controller's program by this checkout's. Services continue, and no request is lost. */
export async function upgradeRemoteController(deps: LauncherDeps): Promise<{ readonly isNew: boolean }> {
  return locked(deps, async () => {
    const record = readControllerRecord(deps.paths.controllerRecord);
    if (record === undefined || record.machineId === null)
      throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'There is no controller on another machine.');
    const machine = await controllerMachine(record, { order: 'any', choices: [] }, machineDeps(deps));
    const remote = machine.provider.remote(machine.id);
    const settings = await settingsFor(record, machine, remote, deps);
    const program = await installController(remote, settings, deps);
    recordPatcher(deps)({ program, publicHost: settings.host.publicHost });
    deps.onStep('Restarting the controller');
    await stopController(remote, deps.signal);
    await startController(remote, deps.signal);
    return { isNew: program !== record.program };
  });
}

/**
 * Terminates the controller's machine and removes the record. The caller checks whether services still need it.
 * `purge`: also removes what services left at any provider, and succeeds when the SSH host does not answer. Returns the
 * machine that did not answer.
 */
export async function removeRemoteController(deps: LauncherDeps, purge: boolean): Promise<string | undefined> {
  return locked(deps, async () => {
    const record = readControllerRecord(deps.paths.controllerRecord);
    if (record === undefined) return undefined;
    recordPatcher(deps)({ isTerminating: true });
    let left: string | undefined;
    try {
      await removeMachines(record, deps);
    } catch (error) {
      // An SSH host that is gone for good never answers. The rest must still be removed.
      if (!purge || !(error instanceof SvcError) || error.code !== 'SVC_SSH') throw error;
      left = record.machineId ?? record.machine?.region;
    }
    if (purge) await removeEverywhere(deps.providers, { 'svc-owner': record.key }, record.key, deps);
    removeControllerRecord(deps.paths.controllerRecord);
    return left;
  });
}

async function removeMachines(record: ControllerRecord, deps: LauncherDeps): Promise<void> {
  if (record.machine === null) return;
  const provider = await deps.providers.provider(record.machine.provider);
  const machines = await listClaimed(provider, record, { 'svc-controller': record.key }, deps.signal);
  for (const { id } of machines) {
    deps.onStep(`Removing machine ${id}`);
    await uninstallController(provider.remote(id), record, deps.signal).catch(() => undefined);
    await destroyMachine(provider, id, deps.clock, goneTimeoutMs, deps.signal);
  }
  await releaseWhenFree(provider, record.key, deps);
}

/** An SSH host keeps running after its removal, so the controller's processes and files must be removed from it. */
async function uninstallController(remote: Remote, { socket }: ControllerRecord, signal: AbortSignal): Promise<void> {
  await stopController(remote, signal);
  await forgetAtBoot(remote, signal);
  const runtimeDir = socket === null ? undefined : posix.dirname(socket);
  if (runtimeDir?.startsWith('/tmp/svc-') === true) await remote.exec(['rm', '-rf', runtimeDir], { signal });
}

async function settingsFor(
  { key }: ControllerRecord,
  machine: RunningControllerMachine,
  remote: Remote,
  { providers, paths, signal, onStep }: LauncherDeps,
): Promise<ControllerSettings> {
  // The controller must also be able to use providers that answer slowly.
  const states = await settledStates(() => providers.states(), onStep, signal);
  return controllerSettings(key, machine, controllerHome(remote), states, paths, signal);
}

async function newRecord(deps: LauncherDeps): Promise<ControllerRecord> {
  const requestedResources = requestedResourcesOf(await deps.config());
  const record = freshControllerRecord({ key: randomHex(8), requestedResources, createdAt: deps.clock.now() });
  writeControllerRecord(deps.paths.controllerRecord, record);
  return record;
}

async function apiSocket(remote: Remote, signal: AbortSignal): Promise<string> {
  const { stdout } = await remote.exec(['id', '-u'], { signal });
  return homePaths(controllerHome(remote), Number(stdout)).controllerSocket;
}

async function openTunnel(remote: Remote, { paths, signal }: LauncherDeps): Promise<string> {
  const { socket } = readControllerRecord(paths.controllerRecord) ?? {};
  if (socket === null || socket === undefined) throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'The controller is not there yet.');
  return remote.forwardSocket(socket, { signal });
}

function machineDeps(deps: LauncherDeps): MachineDeps {
  const { providers, clock, signal, onStep } = deps;
  return { providers, clock, signal, onStep, patchRecord: recordPatcher(deps) };
}
