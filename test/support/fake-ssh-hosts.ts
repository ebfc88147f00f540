import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SshHost } from '../../src/domain/config.ts';
import type { OpenRemote, WorkableRemote } from '../../src/providers/ssh/remotes.ts';
import { LocalRemote } from '../../src/remote/local.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { SvcError } from '../../src/shared/errors.ts';

/** An SSH host that is a folder of this computer, used without SSH. Its programs have a separate HOME and PATH. */
export interface FakeSshHost {
  readonly entry: SshHost;
  readonly home: string;
  /** Whether it is reachable. */
  isUnreachable: boolean;
}

/** Options of such a host. */
export interface FakeSshHostOptions {
  readonly hourlyUsd?: number;
  /** The available commands; default: all of this computer. */
  readonly tools?: readonly string[];
  /** The host's own commands, by name: shell scripts. */
  readonly programs?: Readonly<Record<string, string>>;
}

/** Hosts by name, with remotes for them. */
export class FakeSshHosts {
  readonly #dir: string;
  readonly #hosts = new Map<string, FakeSshHost & { readonly path: string }>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  add(name: string, { hourlyUsd = 0, tools, programs = {} }: FakeSshHostOptions = {}): FakeSshHost {
    const home = join(this.#dir, name, 'home');
    const bin = join(this.#dir, name, 'bin');
    mkdirSync(home, { recursive: true, mode: 0o700 });
    mkdirSync(bin, { recursive: true });
    const all = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';
    for (const tool of tools ?? []) {
      const real = all
        .split(':')
        .map((dir) => join(dir, tool))
        .find((path) => existsSync(path));
      if (real !== undefined) symlinkSync(real, join(bin, tool));
    }
    for (const [program, script] of Object.entries(programs)) writeFileSync(join(bin, program), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const entry = { host: name, user: undefined, port: undefined, identityFile: undefined, proxyJump: undefined, hourlyUsd };
    const host = { entry, home, isUnreachable: false, path: tools === undefined ? `${bin}:${all}` : bin };
    this.#hosts.set(name, host);
    return host;
  }

  readonly open: OpenRemote = ({ host: { host: name }, baseDir, enter, environment, ingress }): WorkableRemote => {
    const host = this.#hosts.get(name);
    if (host === undefined) throw new Error(`no host ${name}`);
    const remote = new LocalRemote({
      baseDir,
      enter,
      environment: { ...environment, HOME: host.home, PATH: host.path },
      address(port) {
        const endpoint = ingress(port);
        return 'socket' in endpoint
          ? { kind: 'unix', path: endpoint.socket, port }
          : { kind: 'tcp', host: '127.0.0.1', port: endpoint.hostPort };
      },
      clock: systemClock,
    });
    const unreachable = (): Promise<never> => Promise.reject(new SvcError('SVC_SSH', `The machine ${name} does not answer over SSH: cut.`));
    return new Proxy(remote, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        return host.isUnreachable ? unreachable : value.bind(target);
      },
    });
  };
}
