import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { generateName, nameProblem } from '../domain/names.ts';
import type { Task } from '../domain/task.ts';
import { collectOffers } from '../provision/offers.ts';
import { refuseMountsAnywhere } from '../provision/mounts-anywhere.ts';
import { refuseSharedPorts } from '../provision/replica-ports.ts';
import { SvcError } from '../shared/errors.ts';
import { servicePaths } from '../shared/paths.ts';
import { randomHex } from '../shared/random-hex.ts';
import { checkTaskFiles } from '../spec/check-task-files.ts';
import { checkTlsFiles } from '../spec/check-tls-files.ts';
import { parseTask } from '../spec/parse-task.ts';
import { hostedAbilities, refuseUnsupported } from '../spec/unsupported.ts';
import type { ServiceRecord } from '../store/records.ts';
import type { DaemonContext } from './daemon-context.ts';
import { checkMetricsPort, chooseEndpointPort, chooseHostedPort } from './endpoint-port.ts';
import { takeSnapshot } from '../provision/files/snapshot.ts';
import { serviceFiles } from './service-files.ts';
import { keepTlsFiles, withUploaded } from './uploads.ts';

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
  /** See `withUploaded`. */
  readonly upload?: string | undefined;
}

/** Tries for a generated name or a free port that somebody else takes at the same moment. */
const attempts = 8;

/**
 * Puts a service into the records, from where its processes take over. Everything that can be refused is refused before anything is written;
 * a crash leaves a recorded service with all its files, or a folder without a record, which the daemon removes.
 */
export async function createService(context: DaemonContext, request: ServiceRequest): Promise<ServiceRecord> {
  const task = await readServiceTask(request, context);
  if (request.name !== undefined) await refuseTaken(context, request.name);
  const places = await context.states();
  const candidates = await collectOffers(task.resources, places, {
    clock: context.clock,
    nodes: task.numNodes,
    placeConfig: task.placeConfig,
  });
  const used = places.filter(({ name }) => candidates.some(({ offer }) => offer.provider === name));
  refuseSharedPorts(task, used);
  refuseMountsAnywhere(
    task,
    used.flatMap(({ provider }) => provider ?? []),
  );

  const key = randomHex(8);
  const files = servicePaths(context.paths, key);
  const shared = serviceFiles(context.store);
  context.creating.add(key);
  try {
    const { note } = await takeSnapshot(task, files.versionDir(1), context.paths.home);
    // A controller on another machine does not have what the user has on this one.
    const kept = await keepTlsFiles(task, request.upload !== undefined || context.store.isShared, files.dir);
    for (const name of ['v1', 'tls']) await shared.save(key, name, join(files.dir, name));
    return await addRecords(context, request, kept, key, note);
  } catch (error) {
    // A database that went away may have recorded it all the same. Where it has not, the daemon finds the folder, and removes it and what is kept.
    if (!(error instanceof SvcError) || error.code !== 'SVC_DATABASE') {
      await shared.remove(key).catch(() => undefined);
      await rm(files.dir, { recursive: true, force: true });
    }
    throw error;
  } finally {
    context.creating.delete(key);
  }
}

/** The task of a service, when it is one that this controller can act on. */
export async function readServiceTask(
  request: ServiceRequest,
  { paths, clock, host }: Pick<DaemonContext, 'paths' | 'clock' | 'host'>,
): Promise<Task> {
  const task = withUploaded(parseTask({ ...request, workdir: request.workdir }), request.upload, paths);
  if (task.service === undefined) {
    throw new SvcError('SVC_INVALID_TASK', `${request.file} has no 'service' section.`, {
      hint: "Add a 'service:' section with a readiness_probe, or run it once with: svc launch",
    });
  }
  const problem = request.name === undefined ? undefined : nameProblem(request.name);
  if (problem !== undefined) throw new SvcError('SVC_BAD_NAME', problem);
  refuseUnsupported(task, request, host?.balancers === undefined ? undefined : hostedAbilities);
  await checkTaskFiles(task, request);
  await checkTlsFiles(task, request, clock.now());
  return task;
}

async function addRecords(
  context: DaemonContext,
  request: ServiceRequest,
  task: Task,
  key: string,
  note: string | undefined,
): Promise<ServiceRecord> {
  const { store, clock } = context;
  // Nobody sits at a machine that was chosen for the controller: there an endpoint on loopback is of no use.
  const isExposed = (request.expose ?? task.service?.expose) === true || context.host !== undefined;
  const host = isExposed ? '0.0.0.0' : '127.0.0.1';
  const metricsPort = task.service?.loadBalancer.metricsPort;
  const wished = request.port ?? task.service?.loadBalancer.port;
  for (let attempt = 1; ; attempt += 1) {
    const taken = new Set((await store.services.list()).map((service) => service.port));
    if (metricsPort !== undefined) {
      await checkMetricsPort(metricsPort, taken);
      taken.add(metricsPort);
    }
    const isHosted = context.host?.balancers !== undefined;
    const port = isHosted ? chooseHostedPort(wished, taken) : await chooseEndpointPort(host, wished, taken);
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
      message: `Put up from ${request.file}; the endpoint is port ${port} on ${host}.${note === undefined ? '' : ` ${note}`}`,
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
