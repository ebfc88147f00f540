import { existsSync } from 'node:fs';
import type { HomePaths } from '../../shared/paths.ts';
import type { Connection, ControllerConnection, LocalController, OnStep, RemoteController } from './controller-connection.ts';
import type { ConnectionDeps } from './local-controller-connection.ts';
import type { Progress } from '../progress.ts';

/** Aborted when this process's command ends: background work, such as a slow check, must not keep it alive. */
export const commandEnd = new AbortController();

/** The connection for commands of the given version. Modules are loaded when used: `--help` needs few of them. */
export function createConnection(paths: HomePaths, { clock, signal, version, say }: ConnectionDeps): Connection {
  const local = async (): Promise<LocalController> =>
    (await import('./local-controller-connection.ts')).connectLocalController(paths, { clock, signal, version, say });
  const load = async (): Promise<RemoteController> => {
    const { checkHome } = await import('../../shared/system/prepare-home.ts');
    checkHome(paths, say);
    const { isInKubernetes } = await import('./controller-kind.ts');
    if (await isInKubernetes(paths))
      return (await import('./kubernetes-controller-connection.ts')).connectKubernetesController(paths, clock, signal);
    const { connectRemoteController } = await import('./remote-controller-connection.ts');
    return connectRemoteController(paths, clock, signal);
  };
  /** Before a deploy, the user must learn that the controller's kind differs from the configuration. */
  const checkKind = async (isLocal: () => Promise<boolean>): Promise<void> => {
    const { checkControllerKind } = await import('./controller-kind.ts');
    await checkControllerKind(paths, isLocal);
  };
  /** Whether a remote controller exists or was requested. */
  const isRemote = async (): Promise<boolean> => {
    if (!existsSync(paths.controllerRecord)) return false;
    (await import('../../launcher/launcher-deps.ts')).dropUnrequestedRecord(paths);
    return existsSync(paths.controllerRecord);
  };
  const remoteController = async (): Promise<RemoteController | undefined> => ((await isRemote()) ? load() : undefined);
  const controller = async (): Promise<ControllerConnection> => (await remoteController()) ?? local();

  return {
    async client(onStep = () => undefined, near) {
      const own = await local();
      const remote = await remoteController();
      if (near !== undefined) await checkKind(() => own.isInUse());
      if (remote !== undefined) return remote.client(onStep);
      if (await own.isInUse()) return own.client(onStep);
      return (await (await load()).clientIfChosen(onStep, near)) ?? own.client(onStep);
    },
    existing: async (onStep) => (await controller()).existing(onStep),
    running: async () => (await controller()).running(),
    bring: async (task, source, onStep = () => undefined) => (await controller()).bring(task, source, onStep),
    async preflight() {
      await isRemote();
      await checkKind(async () => (await local()).isInUse());
      const { isInKubernetes } = await import('./controller-kind.ts');
      if (await isInKubernetes(paths)) await (await load()).preflight();
    },
    async plan(near, onStep) {
      const hasRemote = await isRemote();
      await checkKind(async () => (await local()).isInUse());
      if (!hasRemote && (await (await local()).isInUse())) return (await load()).planWhileLocal();
      return (await load()).plan(near, onStep);
    },
    remoteController,
  };
}

/** Wraps a connection so that waits are shown where the caller does not show them. `waiting` shows them. */
export function announcing(connection: Connection, waiting: () => Progress): Connection {
  const during = async <Result>(text: string, work: (onStep: OnStep) => Promise<Result>): Promise<Result> => {
    const progress = waiting();
    progress.now(text);
    try {
      return await work((step) => progress.now(step));
    } finally {
      progress.stop();
    }
  };
  return {
    ...connection,
    client: (onStep, near) =>
      onStep === undefined
        ? during('Waiting for the controller', (step) => connection.client(step, near))
        : connection.client(onStep, near),
    existing: (onStep) =>
      onStep === undefined ? during('Waiting for the controller', (step) => connection.existing(step)) : connection.existing(onStep),
    running: () => during('Waiting for the controller', () => connection.running()),
    plan: (near, onStep) =>
      onStep === undefined
        ? during('Finding out where the controller is to be', (step) => connection.plan(near, step))
        : connection.plan(near, onStep),
  };
}
