import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, inject } from 'vitest';
import { passSettings, readLoadBalancer } from '../../src/domain/load-balancer.ts';
import type { BalancerConfig, BalancerReplica, BalancerReport } from '../../src/domain/balancer-link.ts';
import { tlsRules } from '../../src/domain/tls-rules.ts';
import { entryPath } from '../../src/shared/program-files.ts';
import { makeTempHome, removeTempHome, withTempHome } from './temp-home.ts';
import { signalAll } from './signal-all.ts';
import { waitFor } from './wait-for.ts';

type Stats = Extract<BalancerReport, { type: 'stats' }>;

/** A serving replica at a TCP port of this machine. */
export function aBalancerReplica(port: number, id = 1, changes: Partial<BalancerReplica> = {}): BalancerReplica {
  return { id, address: { kind: 'tcp', host: '127.0.0.1', port }, place: 'local', weight: 1, state: 'serving', ...changes };
}

/** A client of the control socket, like the reconciler. */
export class ControlLink {
  readonly reports: BalancerReport[] = [];
  /** The balancer closed the link. */
  isClosed = false;
  readonly #socket: Socket;
  #revision = 0;

  constructor(path: string) {
    this.#socket = connect({ path });
    let waiting = '';
    this.#socket.setEncoding('utf8');
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => {
      this.isClosed = true;
    });
    this.#socket.on('data', (text: string) => {
      const lines = (waiting + text).split('\n');
      waiting = lines.pop() ?? '';
      for (const line of lines) this.reports.push(readReport(line));
    });
  }

  /** Applies an endpoint set and waits for the balancer's confirmation. */
  async setReplicas(replicas: readonly BalancerReplica[], epoch = 'test'): Promise<void> {
    this.#revision += 1;
    const revision = this.#revision;
    this.send(JSON.stringify({ type: 'replicas', epoch, revision, replicas }));
    await waitFor('the applied report', () => this.of('applied').some((report) => report.revision === revision), { everyMs: 5 });
  }

  send(line: string): void {
    this.#socket.write(`${line}\n`);
  }

  /** Reports of one type so far. */
  of<Type extends BalancerReport['type']>(type: Type): readonly Extract<BalancerReport, { type: Type }>[] {
    return this.reports.filter((report): report is Extract<BalancerReport, { type: Type }> => report.type === type);
  }

  get lastStats(): Stats | undefined {
    return this.of('stats').at(-1);
  }

  /** Waits until no request is in flight, by the balancer's own count. */
  async idle(): Promise<Stats> {
    return waitFor('counts of zero', () => {
      const stats = this.lastStats;
      return stats !== undefined && Object.values(stats.inFlight).every((count) => count === 0) ? stats : undefined;
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}

function readReport(line: string): BalancerReport {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tests inspect the reports as the process sends them
  return JSON.parse(line) as BalancerReport;
}

/** One line of the access log. */
export type AccessLine = Readonly<Record<string, string | number>>;

/** A balancer process. */
export class RunningBalancer {
  readonly config: BalancerConfig;
  readonly link: ControlLink;
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #output: { text: string };
  readonly #exit: Promise<number | null>;

  private constructor(config: BalancerConfig, { child, output, exit }: Spawned, link: ControlLink, port: number) {
    this.config = config;
    this.#child = child;
    this.#output = output;
    this.#exit = exit;
    this.link = link;
    this.port = port;
  }

  /** Starts one and waits until it serves. `openFiles`: the limit of its open files. */
  static async start(config: BalancerConfig, openFiles?: number): Promise<RunningBalancer> {
    const spawned = spawnBalancer(config, openFiles);
    const { child, output, exit } = spawned;
    try {
      const listening = await waitFor('the balancer to listen', () => /"port":(\d+).*"msg":"Listening"/.exec(output.text) ?? undefined, {
        everyMs: 10,
        describe: () => output.text,
      });
      const link = new ControlLink(config.controlSocket);
      await waitFor('hello', () => link.of('hello').length > 0, { everyMs: 5 });
      return new RunningBalancer(config, spawned, link, Number(listening[1]));
    } catch (error) {
      // No other cleanup would end the process.
      child.kill('SIGKILL');
      await exit;
      throw error;
    }
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Its log output. */
  get output(): string {
    return this.#output.text;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves with the exit code; null when a signal ended it. */
  get exited(): Promise<number | null> {
    return this.#exit;
  }

  /** Resident memory, bytes. */
  memory(): number {
    const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8')) ?? [];
    return Number(kibibytes) * 1_024;
  }

  /** Returns the access log once it has at least `count` lines. */
  async accessLog(count: number): Promise<readonly AccessLine[]> {
    return waitFor(`${count} lines in the access log`, () => {
      const lines = readFileSync(this.config.accessLog, 'utf8').split('\n').slice(0, -1);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see readReport
      return lines.length >= count ? lines.map((line) => JSON.parse(line) as AccessLine) : undefined;
    });
  }

  /** Value by series of a scrape of its metrics. */
  metrics(): Promise<ReadonlyMap<string, number>> {
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: this.config.metricsSocket, path: '/metrics' }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece: string) => (text += piece));
        response.on('end', () => {
          const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
          resolve(new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))])));
        });
      });
      asked.on('error', reject);
      asked.end();
    });
  }

  async stop(): Promise<void> {
    this.link.close();
    this.killAll();
    await this.#exit;
  }

  /** Kills it with its standby, which would take its place. */
  killAll(): void {
    signalAll([-this.pid], 'SIGKILL');
  }
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    child.once('exit', (code) => resolve(code));
  });
}

/** A started process. */
interface Spawned {
  readonly child: ChildProcess;
  readonly output: { text: string };
  /** Resolves with its exit code; null when a signal ended it. */
  readonly exit: Promise<number | null>;
}

function spawnBalancer(config: BalancerConfig, openFiles?: number): Spawned {
  const path = join(config.controlSocket, '..', 'balancer.json');
  writeFileSync(path, JSON.stringify(config));
  const bundle = inject('programBundle');
  const entry = bundle === undefined ? entryPath('balancer/main', false) : join(bundle, entryPath('balancer/main', true));
  const command = [process.execPath, entry, path];
  const limited = openFiles === undefined ? command : ['sh', '-c', 'ulimit -n "$0" && exec "$@"', String(openFiles), ...command];
  const [program = '', ...args] = limited;
  // In its own process group, which its standby shares.
  const child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const exit = exitOf(child);
  const output = { text: '' };
  const collect = (bytes: Buffer): void => {
    output.text += bytes.toString();
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  return { child, output, exit };
}

/** Runs a balancer that must exit by itself; returns its exit code and output. */
export async function runToExit(config: BalancerConfig): Promise<{ readonly code: number | null; readonly output: string }> {
  const { child, output, exit } = spawnBalancer(config);
  // The last output may still be in the pipes at the exit.
  await once(child, 'close');
  return { code: await exit, output: output.text };
}

/** A configuration for a folder, with a free port. */
export function balancerConfig(dir: string, changes: Partial<BalancerConfig> = {}): BalancerConfig {
  return {
    service: 'chat',
    host: '127.0.0.1',
    port: 0,
    threads: 1,
    policy: 'least_load',
    controlSocket: join(dir, 'b.sock'),
    lastReplicasFile: join(dir, 'replicas.json'),
    accessLog: join(dir, 'access.log'),
    metricsSocket: join(dir, 'm.sock'),
    tls: null,
    tlsRules: tlsRules({}),
    protocol: 'auto',
    ...passSettings(readLoadBalancer({})),
    firstByteTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    exposeReplica: true,
    queue: { maxRequests: 1_000, maxBytes: 67_108_864, timeoutMs: 0, fromZero: false },
    retryAfterSeconds: 7,
    ...changes,
  };
}

/** Runs `use` with a new balancer before the given replicas, and always ends it afterwards. */
export async function withBalancer(
  replicas: readonly BalancerReplica[],
  use: (balancer: RunningBalancer) => Promise<void>,
  changes: Partial<BalancerConfig> = {},
  openFiles?: number,
): Promise<void> {
  await withTempHome(async (dir) => {
    const balancer = await RunningBalancer.start(balancerConfig(dir, changes), openFiles);
    try {
      await balancer.link.setReplicas(replicas);
      await use(balancer);
    } finally {
      await balancer.stop();
    }
  });
}

/**
 * One balancer for all tests of a file, because a start takes longer than most tests. Each test applies its own
 * endpoint set, which replaces the former one. Only for tests that read no totals, metrics or access log, and leave the
 * balancer running.
 */
export function sharedBalancer(
  changes: Partial<BalancerConfig> = {},
): (replicas: readonly BalancerReplica[], use: (balancer: RunningBalancer) => Promise<void>) => Promise<void> {
  let dir = '';
  let balancer: RunningBalancer | undefined;
  beforeAll(async () => {
    dir = makeTempHome();
    balancer = await RunningBalancer.start(balancerConfig(dir, changes));
  });
  afterAll(async () => {
    await balancer?.stop();
    await removeTempHome(dir);
  });
  return async (replicas, use) => {
    if (balancer === undefined) throw new Error('The shared balancer did not start.');
    await balancer.link.setReplicas([]);
    await balancer.link.setReplicas(replicas);
    balancer.link.reports.length = 0;
    await use(balancer);
  };
}
