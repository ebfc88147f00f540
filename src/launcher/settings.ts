import { existsSync, readFileSync } from 'node:fs';
import type { ControllerHost } from '../domain/controller-host.ts';
import type { PortableFile } from '../providers/provider.ts';
import type { PlaceState } from '../provision/places.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { ControllerMachine } from './controller-machine.ts';
import type { Installation } from './install.ts';

/** What a controller gets besides the program, and what of it is worth telling beforehand. */
export interface ControllerSettings extends Installation {
  /** What is given away, one line each. */
  readonly given: readonly string[];
}

/**
 * What the controller of a machine is to have: the configuration as it is here, and for each place that can be used here what it needs to use it as
 * well, as little as possible.
 */
export async function controllerSettings(
  key: string,
  machine: ControllerMachine,
  home: string,
  places: readonly PlaceState[],
  paths: HomePaths,
  signal: AbortSignal,
): Promise<ControllerSettings> {
  const host: ControllerHost = {
    key,
    publicHost: machine.status.host ?? 'localhost',
    addresses: machine.status.host === undefined ? [] : [machine.status.host],
    place: machine.place,
    whenIdle: machine.provider.capabilities.stopResume ? 'power-off' : 'exit',
  };
  const files: PortableFile[] = existsSync(paths.config) ? [{ path: 'config.yaml', content: readFileSync(paths.config, 'utf8') }] : [];
  const environment: Record<string, string> = {};
  const given: string[] = [];
  for (const { name, provider } of places) {
    const credentials = await provider?.credentials?.({ provider: machine.provider.name, home, key }, { signal });
    if (credentials === undefined) continue;
    given.push(`${name}: ${credentials.summary}`);
    files.push(...credentials.files);
    Object.assign(environment, credentials.environment);
  }
  return { host, files, environment, given };
}
