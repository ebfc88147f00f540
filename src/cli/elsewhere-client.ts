import { createClient, type ApiClient } from '../api/client.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import { machineStatus } from '../launcher/controller-machine.ts';
import { existingControllerRecord, readControllerRecord } from '../launcher/controller-record.ts';
import { choosePlace, controllerRemote, ensureElsewhere, reachElsewhere } from '../launcher/elsewhere.ts';
import type { LauncherDeps } from '../launcher/launcher-deps.ts';
import { SvcError } from '../shared/errors.ts';
import type { OnStep } from './connection.ts';
import { probe } from './here-connection.ts';

/** How long a controller on a machine that runs may take to answer, ms: it may just be starting with many services. */
const answerTimeoutMs = 60_000;
const pollMs = 250;

/** The ways to the API of a controller on another machine, from the quickest to bringing one up. */
export class ElsewhereClient {
  readonly #depsWith: (onStep: OnStep) => LauncherDeps;
  readonly #silent: LauncherDeps;

  constructor(depsWith: (onStep: OnStep) => LauncherDeps) {
    this.#depsWith = depsWith;
    this.#silent = depsWith(() => undefined);
  }

  /** Of the one there is, or is to be: it is brought up when it does not answer. */
  async get(onStep: OnStep): Promise<ApiClient> {
    const known = await this.#quick();
    if (known !== undefined) return known;
    const choice = await choosePlace(this.#silent);
    // A machine that was asked for is gone on with, whatever the configuration says by now.
    return this.#bringUp(choice.kind === 'here' ? { order: 'any', choices: [] } : choice.alternatives, onStep);
  }

  /** Brings one up when it is to be elsewhere; undefined when it is to be here. */
  async ifChosen(onStep: OnStep, near: ResourceAlternatives | undefined): Promise<ApiClient | undefined> {
    const choice = await choosePlace(this.#silent, near);
    return choice.kind === 'here' ? undefined : this.#bringUp(choice.alternatives, onStep);
  }

  /** Of one that runs now, on a machine that runs. */
  async running(): Promise<ApiClient | undefined> {
    const known = await this.#quick();
    if (known !== undefined) return known;
    const socket = await reachElsewhere(this.#silent);
    return socket === undefined ? undefined : this.#ifAnswering(socket);
  }

  /** Of one that may have something to look after. */
  async existing(): Promise<ApiClient | undefined> {
    const known = await this.#quick();
    if (known !== undefined) return known;
    // One whose machine was stopped had nothing left to look after.
    const status = await machineStatus(existingControllerRecord(this.#silent.paths.controllerRecord), this.#silent);
    return status?.state === 'running' ? this.get(() => undefined) : undefined;
  }

  /** Over the way that is known, without asking the place: what nearly every command needs. */
  async #quick(): Promise<ApiClient | undefined> {
    const { paths, signal } = this.#silent;
    const remote = await controllerRemote(this.#silent);
    const socket = readControllerRecord(paths.controllerRecord)?.socket;
    if (remote === undefined || socket === undefined || socket === null) return undefined;
    try {
      return await this.#ifAnswering(await remote.forwardSocket(socket, { signal }));
    } catch (error) {
      signal.throwIfAborted();
      // Whatever it was: what is to be done about it depends on how the machine is.
      if (error instanceof SvcError && ['SVC_VERSION_MISMATCH', 'SVC_HOST_KEY'].includes(error.code)) throw error;
      return undefined;
    }
  }

  async #bringUp(alternatives: ResourceAlternatives, onStep: OnStep): Promise<ApiClient> {
    return this.#untilAnswering(await ensureElsewhere(alternatives, this.#depsWith(onStep)));
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
    const { place } = readControllerRecord(this.#silent.paths.controllerRecord) ?? { place: null };
    const name = place === null ? '' : ` at ${place.provider}/${place.region}`;
    return new SvcError('SVC_CONTROLLER_UNREACHABLE', `The controller${name} does not answer within ${answerTimeoutMs / 1_000} s.`, {
      hint: 'Run the command again. To put the program there anew: svc controller upgrade',
    });
  }
}
