import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { generateName, nameProblem } from '../../domain/names.ts';
import type { Task } from '../../domain/task.ts';
import { collectOffersNow } from '../../provision/offers.ts';
import { refuseMountsAnywhere } from '../../provision/file-mounts.ts';
import { refuseSharedPorts } from '../../provision/machine-spec.ts';
import { SvcError } from '../../shared/errors.ts';
import { servicePaths } from '../../shared/paths.ts';
import { randomHex } from '../../shared/hex.ts';
import { checkTaskFiles } from '../../spec/check-task-files.ts';
import { checkTlsFiles } from '../../spec/check-tls-files.ts';
import { parseTask } from '../../spec/parse-task.ts';
import { edgeProxyAbilities, refuseUnsupported } from '../../spec/unsupported.ts';
import type { ServiceRecord } from '../../domain/records.ts';
import type { DaemonContext } from '../daemon-context.ts';
import type { ServiceProcesses } from '../supervise/service-processes.ts';
import {
  checkSidePort,
  sidePortsOf,
  chooseEndpointPort,
  chooseEdgeProxyPort,
  claimedPort,
  firstEndpointPort,
  firstPortOf,
} from './endpoint-port.ts';
import type { PortClaim } from './port-claims.ts';
import { takeSnapshot } from '../../provision/files/snapshot.ts';
import { serviceFiles } from './service-files.ts';
import { keepTlsFiles, tlsFolder, withUploaded } from './uploads.ts';

/** Input of `up`. */
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

/** How long `up` waits for the endpoint to listen before it answers anyway, ms. */
const balancerStartMs = 5_000;
/** Number of ports to try when other processes take them between the choice and the start. */
const portAttempts = 5;

/**
 * Records a service and starts its processes. When another process takes the port meanwhile, tries another port. If the
 * user requested that port, removes the service and throws SVC_PORT_BUSY.
 */
export async function deployService(context: DaemonContext, processes: ServiceProcesses, request: ServiceRequest): Promise<ServiceRecord> {
  for (let attempt = 1; ; attempt += 1) {
    const service = await createService(context, request);
    await processes.ensure(service);
    if ((await processes.balancerStart(service.key, balancerStartMs)) !== 'port-busy') return service;
    const message = `Port ${service.port} was taken by another program at the same moment.`;
    const { name, key, state } = service;
    const event = {
      at: context.clock.now(),
      subject: name,
      subjectKey: key,
      replicaId: null,
      from: state,
      to: null,
      cause: 'port-busy',
      message,
    };
    await context.store.services.remove(name, key, event);
    await processes.removeGone();
    if (request.port !== undefined || attempt >= portAttempts) throw new SvcError('SVC_PORT_BUSY', message);
  }
}

/** Attempts for a generated name or a free port when another process takes it at the same moment. */
const attempts = 8;

/**
 * Records a service; its processes take over from the record. Checks the file and the offers before it copies files,
 * the port and the name with the record. A crash leaves a recorded service with all its files, or a folder without a
 * record, which the daemon removes.
 */
export async function createService(context: DaemonContext, request: ServiceRequest): Promise<ServiceRecord> {
  const task = await acceptServiceTask(parseTask(request), request, context);
  if (request.name !== undefined) await refuseTaken(context, request.name);
  await checkOffers(context, task);

  const key = randomHex(8);
  const files = servicePaths(context.paths, key);
  const shared = serviceFiles(context.store);
  context.creating.add(key);
  try {
    const { note } = await takeSnapshot(task, files.versionDir(1), context.paths.home);
    // A controller on another machine cannot read the user's local files.
    const kept = await keepTlsFiles(task, request.upload !== undefined || context.store.isShared, files.dir, 1);
    for (const name of ['v1', tlsFolder(1)]) await shared.save(key, name, join(files.dir, name));
    return await addRecords(context, request, kept, key, note);
  } catch (error) {
    // After a lost database connection the service may be recorded. If not, the daemon removes folder and kept files.
    if (!(error instanceof SvcError) || error.code !== 'SVC_DATABASE') {
      await shared.remove(key).catch(() => undefined);
      await rm(files.dir, { recursive: true, force: true });
    }
    throw error;
  } finally {
    context.creating.delete(key);
  }
}

/**
 * Throws if no provider offers a machine for the task, or if the offering ones cannot run it. `acceptsFull`: that the
 * machines have no room now is no reason.
 */
export async function checkOffers(context: DaemonContext, task: Task, { acceptsFull = false } = {}): Promise<void> {
  const { providers, candidates } = await collectOffersNow(task.resources, () => context.states(), {
    clock: context.clock,
    nodes: task.numNodes,
    providerConfig: task.providerConfig,
    acceptsFull,
  });
  const used = providers.filter(({ name }) => candidates.some(({ offer }) => offer.provider === name));
  refuseSharedPorts(task, used);
  refuseMountsAnywhere(
    task,
    used.flatMap(({ provider }) => provider ?? []),
  );
}

/** The task of a service, with its files where this controller has them. Throws if this controller cannot run it. */
export async function acceptServiceTask(
  parsed: Task,
  request: Omit<ServiceRequest, 'expose' | 'port'>,
  { paths, clock, controllerHost }: Pick<DaemonContext, 'paths' | 'clock' | 'controllerHost'>,
): Promise<Task> {
  const task = withUploaded(parsed, request.upload, paths);
  if (task.service === undefined) {
    throw new SvcError('SVC_INVALID_TASK', `${request.file} has no 'service' section.`, {
      hint: "Add a 'service:' section with a readiness_probe, or run it once with: svc launch",
    });
  }
  const problem = request.name === undefined ? undefined : nameProblem(request.name);
  if (problem !== undefined) throw new SvcError('SVC_BAD_NAME', problem);
  refuseUnsupported(task, request, controllerHost?.balancers === undefined ? undefined : edgeProxyAbilities);
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
  // On a rented controller machine an endpoint on loopback is useless: its clients are on other machines.
  const isExposed = (request.expose ?? task.service?.expose) === true || context.controllerHost !== undefined;
  const host = isExposed ? '0.0.0.0' : '127.0.0.1';
  const sidePorts = task.service === undefined ? [] : sidePortsOf(host, task.service.loadBalancer);
  const requestedPort = request.port ?? task.service?.loadBalancer.port;
  for (let attempt = 1; ; attempt += 1) {
    const taken = new Set((await store.services.list()).map((service) => service.port));
    // Edge proxies listen on other machines.
    const hasEdgeProxies = context.controllerHost?.balancers !== undefined;
    const others = hasEdgeProxies ? new Map<number, PortClaim>() : context.ports.others();
    // Services missing from this database still serve on their ports.
    if (!hasEdgeProxies) for (const { port } of context.ports.own()) taken.add(port);
    for (const sidePort of sidePorts) {
      await checkSidePort(sidePort, new Set([...taken, ...others.keys()]));
      taken.add(sidePort.port);
    }
    // The firewall of a rented controller machine admits clients only at the first ports of the range.
    const first = context.controllerHost === undefined ? firstPortOf(context.paths.home) : firstEndpointPort;
    const port = hasEdgeProxies
      ? chooseEdgeProxyPort(requestedPort, taken)
      : await chooseEndpointPort(host, requestedPort, { taken, others, first });
    const name = request.name ?? generateName(context.random);
    const claimed = hasEdgeProxies ? undefined : context.ports.take({ name, key, port });
    if (claimed !== undefined) {
      if (requestedPort !== undefined || attempt >= attempts) throw claimedPort(port, claimed);
      continue;
    }
    const notes = [note, context.ports.problems.get(port)].filter((each) => each !== undefined);
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
      message: [`Put up from ${request.file}; the endpoint is port ${port} on ${host}.`, ...notes].join(' '),
    };
    try {
      await store.services.add(service, version, event, context.serviceLimit);
      return service;
    } catch (error) {
      const code = error instanceof SvcError ? error.code : undefined;
      // After a lost database connection the service may be recorded; then it still needs its port.
      if (code !== 'SVC_DATABASE') context.ports.release({ port, key });
      const again = (code === 'SVC_NAME_IN_USE' && request.name === undefined) || (code === 'SVC_PORT_BUSY' && requestedPort === undefined);
      if (!again || attempt >= attempts) throw error;
    }
  }
}

async function refuseTaken(context: DaemonContext, name: string): Promise<void> {
  const taken = await context.store.services.get(name);
  if (taken === undefined) return;
  const what = taken.desired === 'down' ? 'is still being terminated' : 'exists already';
  throw new SvcError('SVC_NAME_IN_USE', `A service named '${name}' ${what}.`, {
    hint: `To change it: svc serve update ${name} FILE. Otherwise choose another name with -n, or take it down first: svc serve down ${name}`,
  });
}
