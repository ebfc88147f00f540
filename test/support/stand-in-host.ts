import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SshHost } from '../../src/domain/ssh-pool.ts';
import type { OpenRemote, WorkableRemote } from '../../src/providers/ssh/remotes.ts';
import { LocalRemote } from '../../src/remote/local.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { SvcError } from '../../src/shared/errors.ts';

/** A host that is a folder of this computer, worked on without SSH: what is run there has a home and a PATH of its own. */
export interface StandInHost {
  readonly entry: SshHost;
  readonly home: string;
  /** Whether it can be reached. */
  isAway: boolean;
}

/** How such a host is to be. */
export interface StandInOptions {
  readonly hourlyUsd?: number;
  /** The only commands there are; default: all of this computer. */
  readonly tools?: readonly string[];
  /** Commands of the host's own, by name: shell scripts. */
  readonly programs?: Readonly<Record<string, string>>;
}

/** Hosts by name, and the way to work on them. */
export class StandInHosts {
  readonly #dir: string;
  readonly #hosts = new Map<string, StandInHost & { readonly path: string }>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  add(name: string, { hourlyUsd = 0, tools, programs = {} }: StandInOptions = {}): StandInHost {
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
    const host = { entry, home, isAway: false, path: tools === undefined ? `${bin}:${all}` : bin };
    this.#hosts.set(name, host);
    return host;
  }

  readonly open: OpenRemote = ({ host: { host: name }, baseDir, enter, environment, wayIn }): WorkableRemote => {
    const host = this.#hosts.get(name);
    if (host === undefined) throw new Error(`no host ${name}`);
    const remote = new LocalRemote({
      baseDir,
      enter,
      environment: { ...environment, HOME: host.home, PATH: host.path },
      address(port) {
        const way = wayIn(port);
        return 'socket' in way ? { kind: 'unix', path: way.socket, port } : { kind: 'tcp', host: '127.0.0.1', port: way.hostPort };
      },
      clock: systemClock,
    });
    const away = (): Promise<never> => Promise.reject(new SvcError('SVC_SSH', `The machine ${name} does not answer over SSH: cut.`));
    return new Proxy(remote, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        return host.isAway ? away : value.bind(target);
      },
    });
  };
}
