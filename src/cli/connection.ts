import { existsSync } from 'node:fs';
import type { ApiClient } from '../api/client.ts';
import type { ResourceAlternatives, Task } from '../domain/task.ts';
import type { Clock } from '../shared/clock.ts';
import type { ControllerPlan } from '../launcher/controller-plan.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Elsewhere } from './elsewhere-connection.ts';
import type { HereConnection } from './here-connection.ts';

/** Called with what is being done while a controller is brought up, for people. */
export type OnStep = (text: string) => void;

/**
 * The way to the controller of this home, wherever that is; SVC_HOME_UNUSABLE where that cannot be a home. Calls that are under way end at Ctrl-C.
 */
export interface Connection {
  /**
   * Starts a controller when none runs: on this machine, or on another one when the configuration or the enabled places say so. On this machine a
   * new one takes the place of an older version; services go on. `near`: what the task asks for, as a new controller goes where its machines are to be.
   */
  client(onStep?: OnStep, near?: ResourceAlternatives): Promise<ApiClient>;
  /** Starts one only where one has left something behind, as after a crash; undefined where there is nothing to know about. */
  existing(): Promise<ApiClient | undefined>;
  /** Never starts one. The controller may be of another version: only `health` and `stopController` are sure to be understood. */
  running(): Promise<ApiClient | undefined>;
  /**
   * Brings the files that a task names to the controller's machine and gives the name under which it finds them; undefined where there is nothing to
   * bring, or it runs on this machine and sees them itself. `source`: what the task was read from. Call `client` before.
   */
  bring(task: Task, source: string, onStep?: OnStep): Promise<string | undefined>;
  /**
   * Throws when there can be no controller as the configuration asks for: SVC_CONTROLLER_KIND, SVC_NEEDS_KUBERNETES, SVC_NO_CONTROLLER_IMAGE. Starts
   * nothing. To be called before anything is planned, or asked of anybody.
   */
  checkWish(): Promise<void>;
  /** Where the controller is, or would be when a service is put up; undefined when that is on this machine, as it should. Starts nothing. */
  plan(near: ResourceAlternatives): Promise<ControllerPlan | undefined>;
  /** The controller on another machine, to look after that machine; undefined when there is none. */
  elsewhere(): Promise<Elsewhere | undefined>;
}

/** The real one, for commands of the given version. What it needs is loaded when it is used, as most of it is not for `--help`. */
export function createConnection(paths: HomePaths, clock: Clock, signal: AbortSignal, version: string): Connection {
  const here = async (): Promise<HereConnection> => {
    const { createHereConnection } = await import('./here-connection.ts');
    return createHereConnection(paths, clock, signal, version);
  };
  const load = async (): Promise<Elsewhere> => {
    const { checkHome } = await import('../shared/prepare-home.ts');
    checkHome(paths);
    const { isForCluster } = await import('./controller-kind.ts');
    if (await isForCluster(paths)) return (await import('./cluster-connection.ts')).openInCluster(paths, clock, signal);
    const { openElsewhere } = await import('./elsewhere-connection.ts');
    return openElsewhere(paths, clock, signal);
  };
  /** Whoever is about to have something put up hears first that the controller is not as the configuration says. */
  const checkKind = async (isHere: () => Promise<boolean>): Promise<void> => {
    const { checkControllerKind } = await import('./controller-kind.ts');
    await checkControllerKind(paths, isHere);
  };
  const elsewhere = async (): Promise<Elsewhere | undefined> => (existsSync(paths.controllerRecord) ? load() : undefined);

  return {
    async client(onStep = () => undefined, near) {
      const own = await here();
      if (near !== undefined) await checkKind(() => own.isInUse());
      const away = await elsewhere();
      if (away !== undefined) return away.client(onStep);
      if (await own.isInUse()) return own.client();
      return (await (await load()).clientIfChosen(onStep, near)) ?? own.client();
    },
    existing: async () => ((await elsewhere()) ?? (await here())).existing(),
    running: async () => ((await elsewhere()) ?? (await here())).running(),
    bring: async (task, source, onStep = () => undefined) => (await elsewhere())?.bring(task, source, onStep),
    async checkWish() {
      await checkKind(async () => (await here()).isInUse());
      const { isForCluster } = await import('./controller-kind.ts');
      if (await isForCluster(paths)) await (await load()).checkWish();
    },
    async plan(near) {
      await checkKind(async () => (await here()).isInUse());
      if (!existsSync(paths.controllerRecord) && (await (await here()).isInUse())) return (await load()).planWhileHere();
      return (await load()).plan(near);
    },
    elsewhere,
  };
}
