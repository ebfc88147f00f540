import { existsSync, readFileSync } from 'node:fs';
import type { RemoteControllerInfo } from '../domain/remote-controller-info.ts';
import type { PortableFile } from '../providers/provider.ts';
import type { ProviderState } from '../provision/providers.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { RunningControllerMachine } from './controller-machine.ts';
import type { Installation } from './install.ts';

/** A controller's installation, described for the user. */
export interface ControllerSettings extends Installation {
  /** Copied credentials, one line each. */
  readonly given: readonly string[];
}

/** Has this machine's configuration, and the least credentials for each provider that this machine can use. */
export async function controllerSettings(
  key: string,
  running: RunningControllerMachine,
  home: string,
  providers: readonly ProviderState[],
  paths: HomePaths,
  signal: AbortSignal,
): Promise<ControllerSettings> {
  const host: RemoteControllerInfo = {
    key,
    publicHost: running.status.host ?? 'localhost',
    addresses: running.status.host === undefined ? [] : [running.status.host],
    machine: running.machine,
    whenIdle: running.provider.capabilities.stopResume ? 'power-off' : 'exit',
  };
  const files: PortableFile[] = existsSync(paths.config) ? [{ path: 'config.yaml', content: readFileSync(paths.config, 'utf8') }] : [];
  const environment: Record<string, string> = {};
  const given: string[] = [];
  for (const { name, provider } of providers) {
    const credentials = await provider?.credentials?.({ provider: running.provider.name, home, key }, { signal });
    if (credentials === undefined) continue;
    given.push(`${name}: ${credentials.summary}`);
    files.push(...credentials.files);
    Object.assign(environment, credentials.environment);
  }
  return { host, files, environment, given };
}
