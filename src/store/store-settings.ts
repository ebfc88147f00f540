import type { Config } from '../domain/config.ts';
import { envVar } from '../shared/env.ts';
import type { HomePaths } from '../shared/paths.ts';

/** Location of the state, for `openStore`. */
export interface StoreSettings {
  readonly path: string;
  readonly database: string | undefined;
}

/**
 * Where the state is stored. SVC_DATABASE overrides the configuration. Each process reads it by itself: the address may
 * contain a password, which must not be a process argument.
 */
export function storeSettings(paths: HomePaths, config: Config): StoreSettings {
  return { path: paths.database, database: envVar('SVC_DATABASE') ?? config.serve.controller.database };
}
