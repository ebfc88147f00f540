import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pino } from 'pino';
import { Supervisor } from '../../src/controller/supervise/supervisor.ts';
import type { BalancerConfig } from '../../src/domain/balancer-link.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { fingerprint } from '../../src/shared/hex.ts';
import { programEntry } from '../../src/shared/program-files.ts';
import { codeVersion } from '../../src/shared/version.ts';
import { aBalancerReplica, balancerConfig } from './balancer.ts';
import { freePort } from './free-port.ts';
import { openLoad, type RunningLoad } from './load.ts';
import { withTempHome } from './temp-home.ts';
import { waitFor } from './wait-for.ts';

/** A balancer may take this long to start on a machine with a hundred busy processes, ms. */
const startTimeoutMs = 120_000;
/** Of the replica. A new balancer connects for all connections that wait, and Node's 511 would not hold them. */
const backlog = 4_096;

/** A balancer with the supervisor that restarts it, as in the controller. */
export class SupervisedBalancer {
  readonly supervisor: Supervisor;
  readonly #config: BalancerConfig;

  /** `dir` gets its files. The port of the configuration must not be 0. */
  constructor(dir: string, config: BalancerConfig) {
    this.#config = config;
    const file = join(dir, 'balancer.json');
    const text = JSON.stringify(config);
    writeFileSync(file, text);
    this.supervisor = new Supervisor(
      {
        name: 'balancer',
        argv: [programEntry('balancer/main'), file],
        socketPath: config.controlSocket,
        logFile: join(dir, 'balancer.log'),
        known: null,
        desired: { version: codeVersion(), config: fingerprint(text) },
        renewal: 'hand-over',
      },
      {
        clock: systemClock,
        log: pino({ level: 'silent' }),
        shouldRun: async () => true,
        onUp: () => undefined,
        onDown: () => undefined,
      },
    );
  }

  /** Sends a signal to the process that serves now, and waits for the hello of the next one. Returns that wait, ms. */
  async replaceBy(signal: NodeJS.Signals): Promise<number> {
    const { identity } = this.supervisor;
    const since = performance.now();
    process.kill(identity?.pid ?? 0, signal);
    await this.isUp(identity?.pid);
    return performance.now() - since;
  }

  /** Waits for the hello of a process other than `former`. */
  async isUp(former?: number): Promise<void> {
    const next = (): boolean => this.supervisor.identity !== undefined && this.supervisor.identity.pid !== former;
    await waitFor('the next balancer', next, { everyMs: 5, timeoutMs: startTimeoutMs });
  }

  /** Requests that each open a connection: a reset is of a connection that the balancer had accepted. */
  load(perSecond: number): RunningLoad {
    const url = `http://127.0.0.1:${this.#config.port}/`;
    return openLoad({ url, keepAlive: false, timeoutMs: startTimeoutMs }, perSecond);
  }
}

/** Runs `use` with a supervised balancer of two threads before one replica, which answers at once. */
export async function withSupervisedBalancer(
  use: (balancer: SupervisedBalancer, config: BalancerConfig, dir: string) => Promise<void>,
): Promise<void> {
  const replica = createServer((_, response) => response.end('ok')).listen({ host: '127.0.0.1', port: 0, backlog });
  await once(replica, 'listening');
  const address = replica.address();
  if (address === null || typeof address === 'string') throw new Error('the replica has no port');
  await withTempHome(async (dir) => {
    const config = balancerConfig(dir, { port: await freePort(), threads: 2 });
    writeFileSync(config.lastReplicasFile, JSON.stringify([aBalancerReplica(address.port)]));
    const balancer = new SupervisedBalancer(dir, config);
    try {
      await balancer.isUp();
      await use(balancer, config, dir);
    } finally {
      await balancer.supervisor.end(0);
      replica.close();
    }
  });
}
