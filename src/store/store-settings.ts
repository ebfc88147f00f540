import type { Config } from '../domain/config.ts';
import { envVar } from '../shared/env.ts';
import type { HomePaths } from '../shared/paths.ts';

/** What `openStore` needs to know of where the state is. */
export interface StoreSettings {
  readonly path: string;
  readonly database: string | undefined;
}

/**
 * Where the state is. SVC_DATABASE goes before the configuration. Each process of a controller finds it out by itself, as the address may hold a password, which no
 * process gets as an argument.
 */
export function storeSettings(paths: HomePaths, config: Config): StoreSettings {
  return { path: paths.database, database: envVar('SVC_DATABASE') ?? config.serve.controller.database };
}
