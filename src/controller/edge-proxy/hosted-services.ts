import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { ProxiedService, ProxiedServiceState } from '../../domain/edge-proxy/edge-proxy.ts';
import { portBusyExitCode, type BalancerConfig } from '../../domain/balancer-link.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { Clock } from '../../shared/clock.ts';
import { codeVersion } from '../../shared/version.ts';
import { hasErrno } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/hex.ts';
import type { Logger } from '../../shared/log.ts';
import { parseJson } from '../../shared/json.ts';
import { servicePaths, type HomePaths, type ServicePaths } from '../../shared/paths.ts';
import { programEntry } from '../../shared/program-files.ts';
import { defaultThreads } from '../supervise/balancer-config.ts';
import { foldersIn } from '../folders-in.ts';
import { Supervisor } from '../supervise/supervisor.ts';
import { isHostedService } from './read-command.ts';

/** A balancer lets requests in progress finish for up to half a minute. */
const endGraceMs = 35_000;

interface HostedServicesDeps {
  readonly paths: HomePaths;
  readonly address: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Runs this program instead of the balancer. */
  readonly entry?: string;
}

interface Served {
  /** Fingerprints of the configuration and certificate it was started with. */
  readonly config: string;
  tls: string;
  readonly supervisor: Supervisor;
  isFailing: boolean;
}

/**
 * The balancers of an edge proxy, one per assigned service. The assignment is on disk: after a restart the edge proxy
 * serves before a controller connects.
 */
export class HostedServices {
  readonly #deps: HostedServicesDeps;
  readonly #served = new Map<string, Served>();
  readonly #onChange: () => void;
  readonly #ending = new Set<Promise<void>>();
  #known: ReadonlyMap<string, ProxiedService> = new Map();
  #isAssigned = false;

  constructor(deps: HostedServicesDeps, onChange: () => void) {
    this.#deps = deps;
    this.#onChange = onChange;
  }

  /** Serves the stored assignment; does nothing when there is none. */
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

  /** Serves exactly these services from now on. */
  apply(services: readonly ProxiedService[]): void {
    const whole = services.flatMap((service) => (service.config === null ? (this.#known.get(service.key) ?? []) : service));
    writeFileAtomic(this.#file, JSON.stringify(whole));
    this.#apply(whole);
  }

  get states(): Readonly<Record<string, ProxiedServiceState>> {
    return Object.fromEntries([...this.#served].map(([key, served]) => [key, stateOf(served)]));
  }

  /** Assigned, and no service is starting. A crashing service does not count: it must not block requests of others. */
  get isReady(): boolean {
    return this.#isAssigned && [...this.#served.values()].every((served) => stateOf(served) !== 'starting');
  }

  /** Whether the balancer of each service knows its replicas: a stored set of replicas exists. */
  get isInformed(): boolean {
    return [...this.#served.keys()].every((key) => existsSync(servicePaths(this.#deps.paths, key).lastReplicas));
  }

  /** Files of a served service; undefined for any other. */
  files(key: string): ServicePaths | undefined {
    return this.#served.has(key) ? servicePaths(this.#deps.paths, key) : undefined;
  }

  /** Ends all balancers: they accept nothing more, and requests in progress may finish. */
  async end(): Promise<void> {
    await Promise.all([...[...this.#served.values()].map(({ supervisor }) => supervisor.end(endGraceMs)), ...this.#ending]);
  }

  get #file(): string {
    return join(this.#deps.paths.home, 'services.json');
  }

  #apply(services: readonly ProxiedService[]): void {
    this.#isAssigned = true;
    const desired = new Map(services.map((service) => [service.key, service]));
    this.#known = desired;
    for (const key of new Set([...this.#served.keys(), ...foldersIn(this.#deps.paths.servicesDir)])) if (!desired.has(key)) this.#drop(key);
    for (const service of desired.values()) this.#serve(service);
    this.#onChange();
  }

  #serve(service: ProxiedService): void {
    const { key } = service;
    if (service.config === null) return;
    const files = servicePaths(this.#deps.paths, key);
    const own = ownConfig(service.config, service.tls !== null, files, this.#deps.address);
    const text = `${JSON.stringify(own, undefined, 2)}\n`;
    const config = fingerprint(text);
    const tls = fingerprint(JSON.stringify(service.tls));
    const served = this.#served.get(key);
    // A balancer reloads its certificate files by itself.
    if (served?.tls !== tls) writeTls(service, files);
    if (served?.config === config) return void (served.tls = tls);
    writeFileAtomic(files.balancerConfig, text);
    const supervisor = served?.supervisor ?? this.#supervise(key, service.config.service, files, config);
    served?.supervisor.renew({ version: codeVersion(), config });
    this.#served.set(key, { config, tls, supervisor, isFailing: false });
  }

  #supervise(key: string, service: string, files: ServicePaths, config: string): Supervisor {
    const setFailing = (isFailing: boolean): void => {
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
        desired: { version: codeVersion(), config },
        renewal: 'hand-over',
      },
      {
        clock: this.#deps.clock,
        log: this.#deps.log,
        shouldRun: async () => this.#served.has(key),
        onUp: () => setFailing(false),
        onDown: (isFailing) => setFailing(isFailing),
      },
    );
  }

  #drop(key: string): void {
    const served = this.#served.get(key);
    this.#served.delete(key);
    const ended = this.#remove(key, served);
    this.#ending.add(ended);
    void ended.finally(() => this.#ending.delete(ended));
  }

  async #remove(key: string, served: Served | undefined): Promise<void> {
    try {
      await served?.supervisor.end(endGraceMs);
      // The same service may have been assigned again meanwhile.
      if (!this.#served.has(key)) await rm(servicePaths(this.#deps.paths, key).dir, { recursive: true, force: true });
    } catch (error) {
      this.#deps.log.warn({ err: error, key }, 'a balancer could not be put away');
    }
  }
}

function stateOf({ supervisor, isFailing }: Served): ProxiedServiceState {
  if (supervisor.identity !== undefined) return 'listening';
  if (supervisor.lastExitCode === portBusyExitCode) return 'port-busy';
  return isFailing ? 'failing' : 'starting';
}

/** The balancer's configuration on this machine: the controller's paths and address are invalid here. */
function ownConfig(config: NonNullable<ProxiedService['config']>, isTls: boolean, files: ServicePaths, address: string): BalancerConfig {
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

/** Readable by this user alone: any holder of the key can impersonate the endpoint. */
function writeTls({ tls }: ProxiedService, files: ServicePaths): void {
  mkdirSync(dirname(files.balancerConfig), { recursive: true, mode: 0o700 });
  chmodSync(files.dir, 0o700);
  for (const name of ['key', 'cert'] as const) {
    if (tls === null) rmSync(tlsFile(files, name), { force: true });
    else writeFileAtomic(tlsFile(files, name), tls[name], 0o600);
  }
}
