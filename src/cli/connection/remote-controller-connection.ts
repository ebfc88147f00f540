import { uploadsOf } from '../../domain/upload-layout.ts';
import { remoteControllerDifferences } from '../../launcher/controller-differences.ts';
import { machineStatus } from '../../launcher/controller-machine.ts';
import { planController, planWhileLocal } from '../../launcher/controller-plan.ts';
import { type ControllerRecord, existingControllerRecord, readControllerRecord } from '../../launcher/controller-record.ts';
import {
  chooseControllerMachine,
  controllerRemote,
  ensureRemoteController,
  reachRemoteController,
  removeRemoteController,
  upgradeRemoteController,
} from '../../launcher/remote-controller.ts';
import type { LauncherDeps } from '../../launcher/launcher-deps.ts';
import { uploadFiles, uploadName } from '../../launcher/upload-files.ts';
import { controllerHome } from '../../launcher/install.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { loadConfig } from '../../spec/load-config.ts';
import type { OnStep, RemoteController } from './controller-connection.ts';
import { openProviders } from './open-providers.ts';
import { type ApiClient, createClient } from '../../api/client.ts';
import type { ResourceAlternatives } from '../../domain/task.ts';
import { SvcError } from '../../shared/errors.ts';
import { probe } from './local-controller-connection.ts';

/** Prepares access to a remote controller. Makes no call yet. */
export function connectRemoteController(paths: HomePaths, clock: Clock, signal: AbortSignal): RemoteController {
  const config = (): ReturnType<typeof loadConfig> => loadConfig(paths.config);
  const providers = openProviders(paths, clock);
  const depsWith = (onStep: OnStep): LauncherDeps => ({ paths, providers, config, clock, signal, onStep });
  const silent = depsWith(() => undefined);
  const record = (): ControllerRecord | undefined => readControllerRecord(paths.controllerRecord);
  const client = new RemoteControllerClient(depsWith);
  return {
    client: (onStep) => client.get(onStep),
    clientIfChosen: (onStep, near) => client.ifChosen(onStep, near),
    running: () => client.running(),
    existing: (onStep) => client.existing(onStep),
    async bring(task, source, onStep) {
      const remote = await controllerRemote(silent);
      if (remote === undefined || uploadsOf(task).length === 0) return undefined;
      const upload = uploadName(source);
      await uploadFiles(remote, task, upload, { paths, signal, onStep, home: controllerHome(remote) });
      return upload;
    },
    // Planning finds out which machine it gets.
    preflight: async () => undefined,
    planWhileLocal: () => planWhileLocal(config),
    plan: (near, onStep = () => undefined) => planController(record(), near, depsWith(onStep)),
    record,
    machine: () => machineStatus(existingControllerRecord(paths.controllerRecord), silent),
    async differences() {
      const known = record();
      return known === undefined || known.machine === null ? [] : remoteControllerDifferences(await config(), known);
    },
    upgrade: (onStep) => upgradeRemoteController(depsWith(onStep)),
    remove: (purge, onStep) => removeRemoteController(depsWith(onStep), purge),
  };
}

/** How long a controller on a running machine may take to answer, ms: it may be starting with many services. */
const answerTimeoutMs = 60_000;
const pollMs = 250;

/** Connects to a remote controller's API by the quickest method that works; the last one deploys a controller. */
export class RemoteControllerClient {
  readonly #depsWith: (onStep: OnStep) => LauncherDeps;
  readonly #silent: LauncherDeps;

  constructor(depsWith: (onStep: OnStep) => LauncherDeps) {
    this.#depsWith = depsWith;
    this.#silent = depsWith(() => undefined);
  }

  /** The API of the existing or configured controller. Deploys the controller when it does not answer. */
  async get(onStep: OnStep): Promise<ApiClient> {
    const known = await this.#quick();
    if (known !== undefined) return known;
    const choice = await chooseControllerMachine(this.#depsWith(onStep));
    // A machine that was already requested is used, even if the configuration has changed.
    return this.#bringUp(choice.kind === 'local' ? { order: 'any', choices: [] } : choice.alternatives, onStep);
  }

  /** Deploys a remote controller when one is required; undefined when a local one is. */
  async ifChosen(onStep: OnStep, near: ResourceAlternatives | undefined): Promise<ApiClient | undefined> {
    const choice = await chooseControllerMachine(this.#depsWith(onStep), near);
    return choice.kind === 'local' ? undefined : this.#bringUp(choice.alternatives, onStep);
  }

  /** The API of a running controller on a running machine. */
  async running(): Promise<ApiClient | undefined> {
    const known = await this.#quick();
    if (known !== undefined) return known;
    const socket = await reachRemoteController(this.#silent);
    return socket === undefined ? undefined : this.#ifAnswering(socket);
  }

  /** The API of a controller that may have services. */
  async existing(onStep: OnStep = () => undefined): Promise<ApiClient | undefined> {
    const known = await this.#quick();
    if (known !== undefined) return known;
    // A machine that is stopped had no services left.
    const status = await machineStatus(existingControllerRecord(this.#silent.paths.controllerRecord), this.#silent);
    return status?.state === 'running' ? this.get(onStep) : undefined;
  }

  /** Uses the recorded socket without a call to the provider: enough for nearly every command. */
  async #quick(): Promise<ApiClient | undefined> {
    const { paths, signal } = this.#silent;
    const remote = await controllerRemote(this.#silent);
    const socket = readControllerRecord(paths.controllerRecord)?.socket;
    if (remote === undefined || socket === undefined || socket === null) return undefined;
    try {
      return await this.#ifAnswering(await remote.forwardSocket(socket, { signal }));
    } catch (error) {
      signal.throwIfAborted();
      // Other errors count as no answer: the state of the machine decides what to do about them.
      if (error instanceof SvcError && ['SVC_VERSION_MISMATCH', 'SVC_HOST_KEY'].includes(error.code)) throw error;
      return undefined;
    }
  }

  async #bringUp(alternatives: ResourceAlternatives, onStep: OnStep): Promise<ApiClient> {
    const socket = await ensureRemoteController(alternatives, this.#depsWith(onStep));
    onStep('Waiting for the controller to answer');
    return this.#untilAnswering(socket);
  }

  async #untilAnswering(socketPath: string): Promise<ApiClient> {
    const { clock, signal } = this.#silent;
    const api = this.#open(socketPath);
    const deadline = clock.monotonic() + answerTimeoutMs;
    while ((await probe(api).catch(() => undefined)) === undefined) {
      if (clock.monotonic() > deadline) throw this.#silentController();
      await clock.sleep(pollMs, signal);
      signal.throwIfAborted();
    }
    return api;
  }

  async #ifAnswering(socketPath: string): Promise<ApiClient | undefined> {
    const api = this.#open(socketPath);
    return (await probe(api)) === undefined ? undefined : api;
  }

  #open(socketPath: string): ApiClient {
    const { clock, signal } = this.#silent;
    return createClient({ socketPath, clock, signal });
  }

  #silentController(): SvcError {
    const { machine } = readControllerRecord(this.#silent.paths.controllerRecord) ?? { machine: null };
    const name = machine === null ? '' : ` at ${machine.provider}/${machine.region}`;
    return new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller${name} does not answer within ${answerTimeoutMs / 1_000} s.`, {
      hint: 'Run the command again. To install the program there again: svc controller upgrade',
    });
  }
}
