import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { generateName, nameProblem } from '../domain/names.ts';
import type { Task } from '../domain/task.ts';
import { collectOffers } from '../provision/offers.ts';
import { SvcError } from '../shared/errors.ts';
import { servicePaths, type HomePaths } from '../shared/paths.ts';
import { randomHex } from '../shared/random-hex.ts';
import { checkTaskFiles } from '../spec/check-task-files.ts';
import { parseTask } from '../spec/parse-task.ts';
import { refuseUnsupported } from '../spec/unsupported.ts';
import type { ServiceRecord } from '../store/records.ts';
import type { DaemonContext } from './daemon-context.ts';
import { chooseEndpointPort } from './endpoint-port.ts';
import { takeSnapshot } from './snapshot.ts';

/** What `up` was asked for. */
export interface ServiceRequest {
  readonly name?: string | undefined;
  readonly expose?: boolean | undefined;
  readonly port?: number | undefined;
  readonly source: string;
  readonly file: string;
  readonly envs: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly workdir?: string | undefined;
}

/** Tries for a generated name or a free port that somebody else takes at the same moment. */
const attempts = 8;

/**
 * Puts a service into the records, from where its processes take over. Everything that can be refused is refused before anything is written;
 * a crash at any point leaves either nothing or a service that comes up (see `finishSnapshots`).
 */
export async function createService(context: DaemonContext, request: ServiceRequest): Promise<ServiceRecord> {
  const task = parseTask({ ...request, workdir: request.workdir });
  const { service: spec } = task;
  if (spec === undefined) {
    throw new SvcError('SVC_INVALID_TASK', `${request.file} has no 'service' section.`, {
      hint: "Add a 'service:' section with a readiness_probe, or run it once with: svc launch",
    });
  }
  const problem = request.name === undefined ? undefined : nameProblem(request.name);
  if (problem !== undefined) throw new SvcError('SVC_BAD_NAME', problem);
  if (request.name !== undefined) await refuseTaken(context, request.name);
  refuseUnsupported(task, request);
  await checkTaskFiles(task, request);
  await collectOffers(task.resources, await context.providers());

  const key = randomHex(8);
  const staging = join(context.paths.servicesDir, `.new-${key}`);
  await takeSnapshot(task, join(staging, 'v1'));
  try {
    const service = await addRecords(context, request, task, key);
    await finishSnapshot(context, service);
    return service;
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw error;
  }
}

async function addRecords(context: DaemonContext, request: ServiceRequest, task: Task, key: string): Promise<ServiceRecord> {
  const { store, clock } = context;
  const host = (request.expose ?? task.service?.expose) === true ? '0.0.0.0' : '127.0.0.1';
  const wished = request.port ?? task.service?.loadBalancer.port;
  for (let attempt = 1; ; attempt += 1) {
    const taken = new Set((await store.services.list()).map((service) => service.port));
    const port = await chooseEndpointPort(host, wished, taken);
    const name = request.name ?? generateName(context.random);
    const at = clock.now();
    const service: ServiceRecord = {
      name,
      key,
      state: 'CONTROLLER_INIT',
      desired: 'up',
      purge: false,
      host,
      port,
      version: 1,
      createdAt: at,
      firstReadyAt: null,
      reason: null,
      nextReplicaId: 1,
      memory: { initialised: false, autoscaler: null, failures: [], gaveUp: false },
      reconciler: null,
      balancer: null,
      processesFailed: false,
      revision: 0,
    };
    const version = { service: name, version: 1, task, source: request.source, createdAt: at };
    const event = {
      at,
      subject: name,
      subjectKey: key,
      replicaId: null,
      from: null,
      to: 'CONTROLLER_INIT',
      cause: 'up',
      message: `Put up from ${request.file}; the endpoint is port ${port} on ${host}.`,
    };
    try {
      await store.services.add(service, version, event, context.serviceLimit);
      return service;
    } catch (error) {
      const code = error instanceof SvcError ? error.code : undefined;
      const again = (code === 'SVC_NAME_IN_USE' && request.name === undefined) || (code === 'SVC_PORT_BUSY' && wished === undefined);
      if (!again || attempt >= attempts) throw error;
    }
  }
}

async function refuseTaken(context: DaemonContext, name: string): Promise<void> {
  const taken = await context.store.services.get(name);
  if (taken === undefined) return;
  const what = taken.desired === 'down' ? 'is still being taken down' : 'exists already';
  throw new SvcError('SVC_NAME_IN_USE', `A service named '${name}' ${what}.`, {
    hint: `Choose another name with -n, or take it down first: svc serve down ${name}`,
  });
}

/** Whether a service was recorded but its files are not in their place yet: `up` is about to do that, or a restart will. */
export function isSnapshotPending(paths: HomePaths, key: string): boolean {
  return existsSync(join(paths.servicesDir, `.new-${key}`));
}

/** Moves a snapshot to where its service looks for it. The old folder of an earlier service of that name goes away. */
async function finishSnapshot(context: DaemonContext, service: ServiceRecord): Promise<void> {
  const files = servicePaths(context.paths, service.name, service.key);
  await rm(files.dir, { recursive: true, force: true });
  await rename(join(context.paths.servicesDir, `.new-${service.key}`), files.dir);
}

/** After a crash in the middle of `up`: snapshots whose service was recorded are put in their place, others are removed. */
export async function finishSnapshots(context: DaemonContext, names: readonly string[], services: readonly ServiceRecord[]): Promise<void> {
  for (const name of names.filter((one) => one.startsWith('.new-'))) {
    const service = services.find((one) => name === `.new-${one.key}`);
    if (service === undefined) await rm(join(context.paths.servicesDir, name), { recursive: true, force: true });
    else await finishSnapshot(context, service);
  }
}
