import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SshHost, SshPool } from '../../domain/config.ts';
import { effectiveConfig, type EffectiveConfig } from '../../remote/ssh/effective-config.ts';
import type { Clock } from '../../shared/clock.ts';
import { homeDir } from '../../shared/env.ts';
import type { ControllerTarget, PortableCredentials } from '../provider.ts';

/** Settings for a machine without the user's own configuration. */
interface PlainHost {
  readonly ip: string;
  readonly user?: string;
  readonly port?: number;
  readonly identity_file?: string;
  readonly proxy_jump?: string;
  readonly hourly_usd?: number;
  readonly max_processes?: number;
}

/**
 * The pools, completed from the user's `~/.ssh/config`, with the first key that exists for each SSH host. Keys that
 * only an agent has cannot be copied. Undefined without pools.
 */
export async function portablePools(
  pools: readonly SshPool[],
  target: ControllerTarget,
  clock: Clock,
): Promise<PortableCredentials | undefined> {
  if (pools.length === 0) return undefined;
  const keys = new KeyRing(join(target.home, 'ssh', 'keys'));
  const left: string[] = [];
  const plain: Record<string, { readonly hosts: readonly PlainHost[] }> = {};
  for (const { name, hosts } of pools) {
    const carried: PlainHost[] = [];
    for (const host of hosts) {
      const config = await effectiveConfig(host.host, clock);
      const one = config?.hasProxyCommand === true && host.proxyJump === undefined ? undefined : plainHost(host, config, keys);
      if (one === undefined) left.push(host.host);
      else carried.push(one);
    }
    if (carried.length > 0) plain[name] = { hosts: carried };
  }
  const count = Object.values(plain).reduce((sum, { hosts }) => sum + hosts.length, 0);
  const without = left.length === 0 ? '' : `; without ${left.join(', ')}, whose key or proxy cannot be carried`;
  return {
    summary: `${keys.size} SSH key${keys.size === 1 ? '' : 's'} for ${count} host${count === 1 ? '' : 's'} of your pools${without}`,
    files: [{ path: 'ssh_pools.yaml', content: `${JSON.stringify(plain, undefined, 2)}\n` }, ...keys.files],
    environment: {},
  };
}

function plainHost(host: SshHost, config: EffectiveConfig | undefined, keys: KeyRing): PlainHost | undefined {
  const candidates = host.identityFile === undefined ? (config?.identityFiles ?? []) : [host.identityFile];
  const key = keys.add(candidates.map(expandHome));
  if (key === undefined) return undefined;
  const user = host.user ?? config?.user;
  const port = host.port ?? config?.port;
  const jump = host.proxyJump ?? config?.proxyJump;
  return {
    ip: config?.hostName ?? host.host,
    identity_file: key,
    ...(user !== undefined && user !== '' && { user }),
    ...(port !== undefined && { port }),
    ...(jump !== undefined && { proxy_jump: jump }),
    ...(host.hourlyUsd > 0 && { hourly_usd: host.hourlyUsd }),
    ...(host.maxProcesses !== undefined && { max_processes: host.maxProcesses }),
  };
}

function expandHome(path: string): string {
  return path.startsWith('~/') ? join(homeDir(), path.slice(2)) : path;
}

class KeyRing {
  readonly #folder: string;
  readonly #names = new Map<string, string>();
  readonly files: { readonly path: string; readonly content: string }[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  get size(): number {
    return this.files.length;
  }

  /** Returns the remote path of the first key that exists on this machine. */
  add(candidates: readonly string[]): string | undefined {
    for (const path of candidates) {
      const known = this.#names.get(path);
      const content = known === undefined ? readKey(path) : undefined;
      if (known !== undefined) return join(this.#folder, known);
      if (content === undefined) continue;
      const name = `key-${this.#names.size + 1}`;
      this.#names.set(path, name);
      this.files.push({ path: join('ssh', 'keys', name), content });
      return join(this.#folder, name);
    }
    return undefined;
  }
}

function readKey(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // ssh would also try the next key.
    return undefined;
  }
}
