import { chownSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { clusterView, eventView, serviceView, type ClusterView, type EventView, type ServiceView } from '../../src/api/contract.ts';
import { lastLines } from '../../src/controller/kept-log.ts';
import { expectNoLeaks, killProcessesOf } from './leaks.ts';
import { runSvc, svcOk, type RunOptions, type RunResult } from './run-svc.ts';
import { makeTempHome, removeTempHome } from './temp-home.ts';
import { waitFor } from './wait-for.ts';

/** How a command is run, but for the home, which is the test's. */
export type CallOptions = Omit<RunOptions, 'home'>;

/** The command line with a home of its own. */
export interface Svc {
  readonly home: string;
  readonly run: (args: readonly string[], options?: CallOptions) => Promise<RunResult>;
  /** For a command that has to succeed; gives what it printed. */
  readonly ok: (args: readonly string[], options?: CallOptions) => Promise<string>;
  readonly services: () => Promise<readonly ServiceView[]>;
  readonly service: (name: string) => Promise<ServiceView>;
  readonly clusters: () => Promise<readonly ClusterView[]>;
  readonly events: (name: string) => Promise<readonly EventView[]>;
  /** Waits until at least so many replicas are ready. */
  readonly ready: (name: string, replicas: number, timeoutMs?: number) => Promise<ServiceView>;
  /** Writes one of the test's own files and gives its path. */
  readonly file: (path: string, content: string) => string;
  /** Takes everything down as a user does, and fails when anything of it is left. */
  readonly end: () => Promise<void>;
}

const servicesJson = z.object({ services: z.array(serviceView) });
const clustersJson = z.object({ clusters: z.array(clusterView) });

function createSvc(home: string, defaults: CallOptions): Svc {
  const optionsFor = (given: CallOptions = {}): RunOptions => ({ home, ...defaults, ...given, env: { ...defaults.env, ...given.env } });
  const ok = (args: readonly string[], options?: CallOptions): Promise<string> => svcOk(args, optionsFor(options));

  const services = async (): Promise<readonly ServiceView[]> =>
    servicesJson.parse(JSON.parse(await ok(['serve', 'status', '--json']))).services;

  const service = async (name: string): Promise<ServiceView> => {
    const found = (await services()).find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no service ${name}`);
    return found;
  };

  return {
    home,
    run: (args, options) => runSvc(args, optionsFor(options)),
    ok,
    services,
    service,
    async clusters() {
      return clustersJson.parse(JSON.parse(await ok(['status', '--json']))).clusters;
    },
    async events(name) {
      const text = await ok(['serve', 'events', name, '--json']);
      return text
        .trim()
        .split('\n')
        .map((line) => eventView.parse(JSON.parse(line)));
    },
    async ready(name, replicas, timeoutMs = 60_000) {
      let last: ServiceView | undefined;
      const isReady = async (): Promise<ServiceView | false> => {
        last = await service(name);
        return last.replicasReady >= replicas && last;
      };
      return waitFor(`${replicas} ready replicas of ${name}`, isReady, { timeoutMs, everyMs: 200, describe: () => last });
    },
    file(path, content) {
      const full = join(home, 'files', path);
      mkdirSync(dirname(full), { recursive: true });
      writeFileSync(full, content);
      return full;
    },
    async end() {
      if ((await services()).length > 0) await ok(['serve', 'down', '--all', '--yes'], { timeoutMs: 120_000 });
      await waitFor('all services to be gone', async () => (await services()).length === 0, { describe: services });
      await ok(['controller', 'stop']);
      await expectNoLeaks(home);
    },
  };
}

/** The ends of all logs below a home, for the report of a failure. */
function logsOf(home: string): string {
  return globSync([`${home}/*.log`, `${home}/services/**/*.log`, `${home}/clusters/**/*.log`])
    .map((path) => `--- ${path}\n${lastLines(path, 25).join('\n')}`)
    .join('\n');
}

/** Runs a test with a home of its own. Whatever becomes of it, nothing is left: neither processes nor files. */
export async function withSvc(use: (svc: Svc) => Promise<void>, options: CallOptions = {}): Promise<void> {
  const home = makeTempHome();
  mkdirSync(join(home, 'home'));
  if (options.uid !== undefined) for (const path of [home, join(home, 'home')]) chownSync(path, options.uid, options.uid);
  try {
    await use(createSvc(home, options));
  } catch (error) {
    console.error(logsOf(home));
    throw error;
  } finally {
    await killProcessesOf(home);
    await removeTempHome(home);
  }
}
