import { existsSync, readdirSync } from 'node:fs';
import type { ApiClient } from '../../api/client.ts';
import type { RouteReply } from '../../api/contract.ts';
import type { Clock } from '../../shared/clock.ts';
import { envVar } from '../../shared/env.ts';
import { hasErrno, SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { LocalController } from './controller-connection.ts';

const probeTimeoutMs = 10_000;

/** What the connections of a command need. */
export interface ConnectionDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Version of the command. */
  readonly version: string;
  /** Prints a line on standard error. */
  readonly say: (text: string) => void;
}

/** For commands of the given version. Modules are loaded when used: `--help` needs few of them. */
export function connectLocalController(paths: HomePaths, { clock, signal, version, say }: ConnectionDeps): LocalController {
  const open = async (): Promise<ApiClient> => {
    const { checkHome } = await import('../../shared/system/prepare-home.ts');
    checkHome(paths, say);
    const { createClient } = await import('../../api/client.ts');
    return createClient({ socketPath: paths.controllerSocket, clock, signal });
  };

  async function client(): Promise<ApiClient> {
    const api = await open();
    const { ensureController } = await import('./daemon.ts');
    const { bootDeps, startInstalledUnit } = await import('../boot/boot-entries.ts');
    const startByManager = (): Promise<boolean> => startInstalledUnit(bootDeps({ paths, clock, env: envVar }));
    await ensureController(paths, { clock, signal, probe: () => probeCurrent(api), startByManager, say });
    return api;
  }

  /** A controller that a signal stopped, or that hangs, is killed, and counts as absent. */
  async function probeLive(api: ApiClient): Promise<RouteReply<'health'> | undefined> {
    const { askOrKill } = await import('./controller-process.ts');
    return askOrKill(paths.controllerIdentity, () => probe(api), { clock, signal });
  }

  /** A controller older than this command is ended, and counts as absent. */
  async function probeCurrent(api: ApiClient): Promise<RouteReply<'health'> | undefined> {
    const health = await probeLive(api);
    if (health === undefined || health.version === version) return health;
    const { isOlderVersion } = await import('../../shared/version.ts');
    if (!isOlderVersion(health.version, version)) return health;
    const { retireController } = await import('./controller-process.ts');
    await retireController(health.pid, { clock, signal });
    return undefined;
  }

  async function running(): Promise<ApiClient | undefined> {
    const api = await open();
    return (await probeLive(api)) === undefined ? undefined : api;
  }

  // Folders of services without a database: the database was removed, and the services may still run.
  const hasServices = (): boolean => existsSync(paths.servicesDir) && readdirSync(paths.servicesDir).length > 0;
  const hasLeft = (): boolean =>
    existsSync(paths.restoreMark) || (existsSync(paths.database) && !existsSync(paths.idleMark)) || hasServices();

  /** Other controllers may have written to a database that this home shares: only the controller can read it. */
  async function isShared(): Promise<boolean> {
    const { loadConfig } = await import('../../spec/load-config.ts');
    const { database, highAvailability } = (await loadConfig(paths.config)).serve.controller;
    return !highAvailability && (envVar('SVC_DATABASE') ?? database) !== undefined;
  }

  return {
    client,
    running,
    isInUse: async () => hasLeft() || (await running()) !== undefined,
    // A controller that ended without services left an idle mark. Then there is no reason to start one.
    existing: async () => (hasLeft() || (await isShared()) ? client() : running()),
    bring: () => Promise.resolve(undefined),
  };
}

/** No process listens, or the process ended before it answered: both mean that no controller runs. */
const absences = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'] as const;

/** The controller's health; undefined when none runs. */
export async function probe(api: ApiClient): Promise<RouteReply<'health'> | undefined> {
  try {
    return await api.call('health', { timeoutMs: probeTimeoutMs });
  } catch (error) {
    if (error instanceof SvcError && hasErrno(error.cause, ...absences)) return undefined;
    throw error;
  }
}
