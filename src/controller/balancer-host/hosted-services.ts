import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { HostedService, HostedState } from '../../domain/balancer-host.ts';
import { portBusyExitCode, type BalancerConfig } from '../../domain/balancer-link.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import type { Clock } from '../../shared/clock.ts';
import { codeVersion } from '../../shared/code-version.ts';
import { hasErrno } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/fingerprint.ts';
import type { Logger } from '../../shared/log.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { servicePaths, type HomePaths, type ServicePaths } from '../../shared/paths.ts';
import { programEntry } from '../../shared/program-files.ts';
import { defaultThreads } from '../balancer-config.ts';
import { foldersIn } from '../folders-in.ts';
import { Supervisor } from '../supervisor.ts';
import { isHostedService } from './read-command.ts';

/** A balancer lets requests under way end within half a minute. */
const endGraceMs = 35_000;

/** What serving needs. */
export interface HostedDeps {
  readonly paths: HomePaths;
  /** Where endpoints listen. */
  readonly address: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** What to run instead of the balancer. */
  readonly entry?: string;
}

interface Served {
  /** Fingerprints of what it was started with. */
  readonly config: string;
  tls: string;
  readonly supervisor: Supervisor;
  isFailing: boolean;
}

/**
 * The balancers of a host, one for each service that it was told of. What it was told is kept, so that a host that starts again serves before any controller
 * has found it.
 */
export class HostedServices {
  readonly #deps: HostedDeps;
  readonly #served = new Map<string, Served>();
  readonly #onChange: () => void;
  readonly #ending = new Set<Promise<void>>();
  #known: ReadonlyMap<string, HostedService> = new Map();
  #isTold = false;

  constructor(deps: HostedDeps, onChange: () => void) {
    this.#deps = deps;
    this.#onChange = onChange;
  }

  /** Serves what was served before; does nothing when nothing is known of that. */
  recall(): void {
    let text: string;
    try {
      text = readFileSync(this.#file, 'utf8');
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return;
      throw error;
    }
    const known = parseJson(text);
    if (Array.isArray(known) && known.every(isHostedService)) this.#apply(known);
  }

  /** Serves exactly these from now on. */
  apply(services: readonly HostedService[]): void {
    const whole = services.flatMap((service) => (service.config === null ? (this.#known.get(service.key) ?? []) : service));
    writeFileAtomic(this.#file, JSON.stringify(whole));
    this.#apply(whole);
  }

  /** How each does. */
  get states(): Readonly<Record<string, HostedState>> {
    return Object.fromEntries([...this.#served].map(([key, served]) => [key, stateOf(served)]));
  }

  /** It was told what to serve, and does: all that can be served, as one service whose process keeps dying must not keep the requests of others away. */
  get isReady(): boolean {
    return this.#isTold && [...this.#served.values()].every((served) => stateOf(served) !== 'starting');
  }

  /** Of each service that is served its balancer knows the replicas: it has kept a set of them. */
  get isInformed(): boolean {
    return [...this.#served.keys()].every((key) => existsSync(servicePaths(this.#deps.paths, key).lastReplicas));
  }

  /** Files of a service that is served; undefined for any other. */
  files(key: string): ServicePaths | undefined {
    return this.#served.has(key) ? servicePaths(this.#deps.paths, key) : undefined;
  }

  /** Ends all balancers: they accept nothing more, and what is under way may end. */
  async end(): Promise<void> {
    await Promise.all([...[...this.#served.values()].map(({ supervisor }) => supervisor.end(endGraceMs)), ...this.#ending]);
  }

  get #file(): string {
    return join(this.#deps.paths.home, 'services.json');
  }

  #apply(services: readonly HostedService[]): void {
    this.#isTold = true;
    const wanted = new Map(services.map((service) => [service.key, service]));
    this.#known = wanted;
    for (const key of new Set([...this.#served.keys(), ...foldersIn(this.#deps.paths.servicesDir)])) if (!wanted.has(key)) this.#drop(key);
    for (const service of wanted.values()) this.#serve(service);
    this.#onChange();
  }

  #serve(service: HostedService): void {
    const { key } = service;
    if (service.config === null) return;
    const files = servicePaths(this.#deps.paths, key);
    const own = ownConfig(service.config, service.tls !== null, files, this.#deps.address);
    const text = `${JSON.stringify(own, undefined, 2)}\n`;
    const config = fingerprint(text);
    const tls = fingerprint(JSON.stringify(service.tls));
    const served = this.#served.get(key);
    // A balancer follows the files of its certificate by itself.
    if (served?.tls !== tls) writeTls(service, files);
    if (served?.config === config) return void (served.tls = tls);
    writeFileAtomic(files.balancerConfig, text);
    // The process goes on; the new supervisor finds it and has it hand over to one with the new configuration.
    void served?.supervisor.release();
    this.#served.set(key, { config, tls, supervisor: this.#supervise(key, service.config.service, files, config), isFailing: false });
  }

  #supervise(key: string, service: string, files: ServicePaths, config: string): Supervisor {
    const note = (isFailing: boolean): void => {
      const served = this.#served.get(key);
      if (served !== undefined) served.isFailing = isFailing;
      this.#onChange();
    };
    return new Supervisor(
      {
        name: `balancer of ${service}`,
        argv: [this.#deps.entry ?? programEntry('balancer/main'), files.balancerConfig],
        socketPath: files.balancerSocket,
        logFile: files.balancerLog,
        known: null,
        wanted: { version: codeVersion(), config },
        renewal: 'hand-over',
      },
      {
        clock: this.#deps.clock,
        log: this.#deps.log,
        isWanted: async () => this.#served.has(key),
        onUp: () => note(false),
        onDown: (isFailing) => note(isFailing),
      },
    );
  }

  #drop(key: string): void {
    const served = this.#served.get(key);
    this.#served.delete(key);
    const ended = this.#putAway(key, served);
    this.#ending.add(ended);
    void ended.finally(() => this.#ending.delete(ended));
  }

  async #putAway(key: string, served: Served | undefined): Promise<void> {
    try {
      await served?.supervisor.end(endGraceMs);
      // The same service may have come back meanwhile.
      if (!this.#served.has(key)) await rm(servicePaths(this.#deps.paths, key).dir, { recursive: true, force: true });
    } catch (error) {
      this.#deps.log.warn({ err: error, key }, 'a balancer could not be put away');
    }
  }
}

function stateOf({ supervisor, isFailing }: Served): HostedState {
  if (supervisor.identity !== undefined) return 'listening';
  if (supervisor.lastExitCode === portBusyExitCode) return 'port-busy';
  return isFailing ? 'failing' : 'starting';
}

/** What the balancer is started with here: the controller's paths and address mean nothing on this machine. */
function ownConfig(config: NonNullable<HostedService['config']>, isTls: boolean, files: ServicePaths, address: string): BalancerConfig {
  return {
    ...config,
    host: address,
    threads: config.threads ?? defaultThreads(availableParallelism()),
    controlSocket: files.balancerSocket,
    lastReplicasFile: files.lastReplicas,
    accessLog: files.accessLog,
    metricsSocket: files.metricsSocket,
    tls: isTls ? { keyFile: tlsFile(files, 'key'), certFile: tlsFile(files, 'cert') } : null,
  };
}

const tlsFile = (files: ServicePaths, name: 'key' | 'cert'): string => join(files.dir, `${name}.pem`);

/** For this user alone: whoever has the key can be the endpoint. */
function writeTls({ tls }: HostedService, files: ServicePaths): void {
  mkdirSync(dirname(files.balancerConfig), { recursive: true, mode: 0o700 });
  chmodSync(files.dir, 0o700);
  for (const name of ['key', 'cert'] as const) {
    if (tls === null) rmSync(tlsFile(files, name), { force: true });
    else writeFileAtomic(tlsFile(files, name), tls[name], 0o600);
  }
}
