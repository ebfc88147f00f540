import type { Config } from '../domain/config.ts';
import { envVar } from '../shared/env.ts';
import type { HomePaths } from '../shared/paths.ts';

/** Location of the state, for `openStore`. */
export interface StoreSettings {
  readonly path: string;
  readonly database: string | undefined;
}

/** Location of the state; SVC_DATABASE overrides it. Each process reads it: an argument would show the password. */
export function storeSettings(paths: HomePaths, config: Config): StoreSettings {
  return { path: paths.database, database: envVar('SVC_DATABASE') ?? config.serve.controller.database };
}
