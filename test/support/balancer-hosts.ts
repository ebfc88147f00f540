import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BalancerHostMember, HostedService } from '../../src/domain/balancer-host.ts';
import { readSharedKey } from '../../src/controller/balancer-host/shared-key.ts';
import type { HostAccess } from '../../src/controller/balancer-host/host-link.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { programEntry } from '../../src/shared/program-files.ts';
import { balancerConfig } from './balancer.ts';
import { signalAll } from './signal-all.ts';

/** What a service of a test is served as. */
export function aHostedService(port: number, change: Partial<HostedService> = {}): HostedService {
  return {
    key: 'k1',
    // What a host does itself is left to it.
    config: balancerConfig('', {
      host: '0.0.0.0',
      port,
      policy: 'round_robin',
      controlSocket: '',
      lastReplicasFile: '',
      accessLog: '',
      metricsSocket: '',
      firstByteTimeoutMs: 30_000,
      idleTimeoutMs: 30_000,
      exposeReplica: false,
      keepAliveTimeoutMs: 30_000,
      queue: { maxRequests: 100, maxBytes: 1_000_000, timeoutMs: 300, fromZero: false },
      retryAfterSeconds: 1,
    }),
    tls: null,
    ...change,
  };
}

/** A balancer host as a process, at an address of its own of this machine's loopback. */
export class RunningHost {
  readonly member: BalancerHostMember;
  readonly home: string;
  readonly #tokenFile: string;
  #child: ChildProcess | undefined;

  /** `dir`: for all hosts of a test; `last`: the last number of its address. */
  constructor(dir: string, last: number, port: number) {
    this.member = { name: `host-${last}`, host: `127.0.0.${last}`, port };
    this.home = join(dir, `h${last}`);
    this.#tokenFile = tokenFile(dir);
    mkdirSync(this.home, { mode: 0o700, recursive: true });
  }

  start(): void {
    const log = openSync(join(this.home, 'host.log'), 'a');
    const env = {
      ...process.env,
      SVC_HOME: this.home,
      SVC_BALANCER_TOKEN_FILE: this.#tokenFile,
      SVC_BALANCER_PORT: String(this.member.port),
      SVC_BALANCER_ADDRESS: this.member.host,
    };
    this.#child = spawn(process.execPath, [programEntry('controller/balancer-host/main')], { env, stdio: ['ignore', log, log] });
  }

  get log(): string {
    return readFileSync(join(this.home, 'host.log'), 'utf8');
  }

  /** With everything that it started, as when its machine is lost. */
  signal(signal: NodeJS.Signals, children: readonly number[] = []): void {
    const own = this.#child?.pid;
    signalAll(own === undefined ? children : [own, ...children], signal);
  }

  get exited(): Promise<unknown> {
    return this.#child === undefined ? Promise.resolve() : once(this.#child, 'exit');
  }
}

function tokenFile(dir: string): string {
  const path = join(dir, 'token');
  writeFileSync(path, 'a token that only tests have\n', { mode: 0o600 });
  return path;
}

/** What a controller with that term has to speak to the hosts of a test. */
export function hostAccess(dir: string, term = 1): HostAccess {
  return { key: readSharedKey(tokenFile(dir)), term, clock: systemClock };
}
