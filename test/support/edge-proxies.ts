import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EdgeProxyMember, ProxiedService } from '../../src/domain/edge-proxy/edge-proxy.ts';
import { readSharedKey } from '../../src/controller/edge-proxy/shared-key.ts';
import type { EdgeProxyAccess } from '../../src/controller/edge-proxy/edge-proxy-connection.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { programEntry } from '../../src/shared/program-files.ts';
import { balancerConfig } from './balancer.ts';
import { signalAll } from './signal-all.ts';

/** The settings that an edge proxy gets for a service of a test. */
export function aProxiedService(port: number, change: Partial<ProxiedService> = {}): ProxiedService {
  return {
    key: 'k1',
    // The edge proxy itself sets the remaining values.
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

/** An edge proxy as a process, at its own address of this machine's loopback. */
export class RunningEdgeProxy {
  readonly member: EdgeProxyMember;
  readonly home: string;
  readonly #tokenFile: string;
  #child: ChildProcess | undefined;

  /** `dir`: shared by all edge proxies of a test; `last`: the last number of its address. */
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
    this.#child = spawn(process.execPath, [programEntry('controller/edge-proxy/main')], { env, stdio: ['ignore', log, log] });
  }

  get log(): string {
    return readFileSync(join(this.home, 'host.log'), 'utf8');
  }

  /** Kills it and all processes it started, as when its machine is lost. */
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

/** The credentials and term with which a controller calls the edge proxies of a test. */
export function edgeProxyAccess(dir: string, term = 1): EdgeProxyAccess {
  return { key: readSharedKey(tokenFile(dir)), term, clock: systemClock };
}
