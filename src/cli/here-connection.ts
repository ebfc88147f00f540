import { existsSync } from 'node:fs';
import type { ApiClient } from '../api/client.ts';
import type { RouteReply } from '../api/contract.ts';
import type { Clock } from '../shared/clock.ts';
import { envVar } from '../shared/env.ts';
import { hasErrno, SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Connection } from './connection.ts';

/** The ways to a controller on this machine. */
export interface HereConnection extends Pick<Connection, 'existing' | 'running'> {
  client(): Promise<ApiClient>;
  /** Whether one runs, or has left something behind that it would look after. */
  isInUse(): Promise<boolean>;
}

/** How long a controller may take to say that it is there, ms. */
const probeTimeoutMs = 10_000;

/** For commands of the given version. What it needs is loaded when it is used, as most of it is not for `--help`. */
export function createHereConnection(paths: HomePaths, clock: Clock, signal: AbortSignal, version: string): HereConnection {
  const open = async (): Promise<ApiClient> => {
    const { checkHome } = await import('../shared/prepare-home.ts');
    checkHome(paths);
    const { createClient } = await import('../api/client.ts');
    return createClient({ socketPath: paths.controllerSocket, clock, signal });
  };

  async function client(): Promise<ApiClient> {
    const api = await open();
    const { ensureController } = await import('./daemon.ts');
    await ensureController(paths, { clock, signal, probe: () => probeCurrent(api) });
    return api;
  }

  /** One that is older than this command makes room, and counts as none. */
  async function probeCurrent(api: ApiClient): Promise<RouteReply<'health'> | undefined> {
    const health = await probe(api);
    if (health === undefined || health.version === version) return health;
    const { isOlderVersion } = await import('../shared/compare-versions.ts');
    if (!isOlderVersion(health.version, version)) return health;
    const { retireController } = await import('./controller-process.ts');
    await retireController(health.pid, { clock, signal });
    return undefined;
  }

  async function running(): Promise<ApiClient | undefined> {
    const api = await open();
    return (await probe(api)) === undefined ? undefined : api;
  }

  const hasLeft = (): boolean => existsSync(paths.database) && !existsSync(paths.idleMark);

  /** Others may have put something into a database that they share with this home: only its controller can tell. */
  async function isShared(): Promise<boolean> {
    const { loadConfig } = await import('../spec/load-config.ts');
    const { database, highAvailability } = (await loadConfig(paths.config)).serve.controller;
    return !highAvailability && (envVar('SVC_DATABASE') ?? database) !== undefined;
  }

  return {
    client,
    running,
    isInUse: async () => hasLeft() || (await running()) !== undefined,
    // A controller that has ended with nothing left to look after left a mark: there is nothing to start another one for.
    existing: async () => (hasLeft() || (await isShared()) ? client() : running()),
  };
}

/** Nobody listens, or who did ended before it answered: both mean that there is none. */
const absences = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'] as const;

/** What the controller says of itself; undefined when none runs. */
export async function probe(api: ApiClient): Promise<RouteReply<'health'> | undefined> {
  try {
    return await api.call('health', { timeoutMs: probeTimeoutMs });
  } catch (error) {
    if (error instanceof SvcError && hasErrno(error.cause, ...absences)) return undefined;
    throw error;
  }
}
