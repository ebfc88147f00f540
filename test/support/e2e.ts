import { chownSync, cpSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { inject } from 'vitest';
import { z } from 'zod';
import type { ClusterView, EventView, ServiceView } from '../../src/api/contract.ts';
import { clusterView, eventView, serviceView } from '../../src/api/view-schemas.ts';
import { lastLines } from '../../src/controller/kept-log.ts';
import { expectNoLeaks, killProcessesOf } from './leaks.ts';
import { runSvc, svcOk, type RunOptions, type RunResult } from './run-svc.ts';
import { makeTempHome, removeTempHome } from './temp-home.ts';
import { waitFor } from './wait-for.ts';

/** Options of a command, except for the home, which belongs to the test. */
export type CallOptions = Omit<RunOptions, 'home'>;

/** The command line with a home of its own. */
export interface Svc {
  readonly home: string;
  readonly run: (args: readonly string[], options?: CallOptions) => Promise<RunResult>;
  /** Runs a command that must succeed; returns its output. */
  readonly ok: (args: readonly string[], options?: CallOptions) => Promise<string>;
  readonly services: () => Promise<readonly ServiceView[]>;
  readonly service: (name: string) => Promise<ServiceView>;
  readonly clusters: () => Promise<readonly ClusterView[]>;
  readonly events: (name: string) => Promise<readonly EventView[]>;
  /** Waits until at least this many replicas are ready. */
  readonly ready: (name: string, replicas: number) => Promise<ServiceView>;
  /** Writes a file of the test and returns its path. */
  readonly file: (path: string, content: string) => string;
  /** Terminates everything with the user's commands, and fails when anything remains. */
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
    async ready(name, replicas) {
      let last: ServiceView | undefined;
      const isReady = async (): Promise<ServiceView | false> => {
        last = await service(name);
        return last.replicasReady >= replicas && last;
      };
      return waitFor(`${replicas} ready replicas of ${name}`, isReady, { everyMs: 200, describe: () => last });
    },
    file(path, content) {
      const full = join(home, 'files', path);
      mkdirSync(dirname(full), { recursive: true });
      writeFileSync(full, content);
      return full;
    },
    async end() {
      if ((await services()).length > 0) await ok(['serve', 'down', '--all', '--yes']);
      await waitFor('all services to be gone', async () => (await services()).length === 0, { describe: services });
      await ok(['controller', 'stop']);
      await expectNoLeaks(home);
    },
  };
}

/** Returns the ends of all logs below a home, for the report of a failure. */
function logsOf(home: string): string {
  return globSync([`${home}/*.log`, `${home}/services/**/*.log`, `${home}/clusters/**/*.log`])
    .map((path) => `--- ${path}\n${lastLines(path, 25).join('\n')}`)
    .join('\n');
}

/** Gives a home the bundle of this checkout, which the first command would take seconds to make. */
function copyProgram(home: string): void {
  const bundle = inject('programBundle');
  const programs = join(home, 'programs');
  mkdirSync(programs, { mode: 0o700 });
  if (bundle !== undefined) cpSync(bundle, join(programs, basename(bundle)), { recursive: true });
}

/** Runs a test with a new home. Afterwards no processes or files remain, even after a failure. */
export async function withSvc(use: (svc: Svc) => Promise<void>, options: CallOptions = {}): Promise<void> {
  const home = makeTempHome();
  mkdirSync(join(home, 'home'));
  copyProgram(home);
  if (options.uid !== undefined)
    for (const path of [home, join(home, 'home'), join(home, 'programs')]) chownSync(path, options.uid, options.uid);
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
