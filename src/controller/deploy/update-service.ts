import { readdir, rename, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { subjectEvent, type ServiceRecord, type VersionRecord } from '../../domain/records.ts';
import { canReplace, filesVersionOf, isSameProgram, isSameVersion, provenVersionOf, type TaskVersion } from '../../domain/rollout.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';
import { defaultUpdate, type Task, type UpdateMode, type UpdatePolicy } from '../../domain/task.ts';
import { isSameSnapshot, takeSnapshot } from '../../provision/files/snapshot.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { servicePaths } from '../../shared/paths.ts';
import { checkTlsFiles } from '../../spec/check-tls-files.ts';
import { describeChanges } from '../../spec/describe-changes.ts';
import { parseTask } from '../../spec/parse-task.ts';
import { compareAndSwap } from '../../store/compare-and-swap.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { checkOffers, acceptServiceTask, type ServiceRequest } from './deploy-service.ts';
import { checkSidePort, sidePortsOf } from './endpoint-port.ts';
import { serviceFiles } from './service-files.ts';
import { whyNoSurge } from './surge-capacity.ts';
import { keepTlsFiles, tlsFolder } from './uploads.ts';

/** Input of `update`: a file and additions to its update policy. */
interface UpdateRequest extends Omit<ServiceRequest, 'name' | 'expose' | 'port'>, UpdateBasis {
  readonly policy?: PolicyChange | undefined;
}

/** Settings of the command line that override the file's. */
type PolicyChange = { readonly [Setting in keyof UpdatePolicy]?: UpdatePolicy[Setting] | undefined };

/** How an update or a rollback is to be made. */
interface UpdateBasis {
  /** Only returns what would change. */
  readonly dryRun: boolean;
  /** The version that the user saw; another one is a conflict. */
  readonly from?: number | undefined;
}

/** What an update changes. */
export interface UpdatePlan {
  /** The new version; null when the file changes nothing. */
  readonly version: number | null;
  readonly from: number;
  /** Lines of the difference between the two files. */
  readonly changes: readonly string[];
  /** How many living replicas are replaced; 0 when the program stays the same. */
  readonly replaced: number;
  /** Whether the program stays the same, so that living replicas are kept. */
  readonly keepsReplicas: boolean;
  readonly update: UpdatePolicy;
  /** Why replicas that the update must add have no capacity now: sentences. Absent: they have, or none is added. */
  readonly noCapacity?: string;
}

/**
 * Records a new version of a service from a file; its reconciler replaces the replicas. Everything is checked before
 * anything is recorded. Throws the errors of `createService`, SVC_UPDATE_CONFLICT when another update came first, and
 * SVC_NOT_SUPPORTED when the endpoint would have to move.
 */
export async function updateService(context: DaemonContext, service: ServiceRecord, request: UpdateRequest): Promise<UpdatePlan> {
  const parsed = parseTask(request);
  const read = await acceptServiceTask(parsed, { ...request, name: service.name }, context);
  const task = withPolicy(read, request.policy);
  await refuseMovedEndpoint(context, service, task);
  await checkOffers(context, task, { acceptsFull: true });
  return whileUpdating(context, service, request, async () => {
    const files = servicePaths(context.paths, service.key);
    const version = service.version + 1;
    const copy = join(files.dir, `.v${version}-${randomHex(4)}.tmp`);
    try {
      await removeOldCopies(files.dir, request.dryRun);
      const { note } = await takeSnapshot(task, copy, context.paths.home);
      const kept = await context.store.services.versions(service.name);
      const shared = serviceFiles(context.store);
      const taskFile = taskFileOf(parsed, request.file);
      const equal = await versionWithFiles(kept, async (earlier) => {
        await shared.restore(service.key, `v${earlier}`, files.versionDir(earlier));
        return isSameSnapshot(copy, files.versionDir(earlier), taskFile);
      });
      const next = { version, task: equal === undefined ? task : { ...task, filesVersion: equal } };
      const plan = await planOf(context, service, next, { source: request.source, kept });
      if (request.dryRun || plan.version === null) return plan;
      if (equal === undefined) {
        // A crash may have left a folder that no record names.
        await rm(files.versionDir(version), { recursive: true, force: true });
        await rename(copy, files.versionDir(version));
        await shared.save(service.key, `v${version}`, files.versionDir(version));
      }
      const isNeeded = request.upload !== undefined || context.store.isShared;
      const recorded = await keepTlsFiles(next.task, isNeeded, files.dir, version);
      await shared.save(service.key, tlsFolder(version), join(files.dir, tlsFolder(version)));
      const message = [`Updated from ${request.file} to version ${version}.`, ...(note === undefined ? [] : [note])].join(' ');
      await addVersion(context, service, { version, task: recorded, source: request.source }, { message, mode: plan.update.mode });
      return plan;
    } finally {
      await rm(copy, { recursive: true, force: true });
    }
  });
}

/**
 * Records a new version that equals an earlier one. `to`: that version; without it the last one that worked before the
 * current one. Throws SVC_VERSION_NOT_FOUND.
 */
export async function rollbackService(
  context: DaemonContext,
  service: ServiceRecord,
  { to = earlierVersion(service), ...basis }: UpdateBasis & { readonly to?: number | undefined },
): Promise<UpdatePlan> {
  return whileUpdating(context, service, basis, async () => {
    const kept = await context.store.services.versions(service.name);
    const earlier = kept.find(({ version }) => version === to);
    if (to === 0)
      throw new SvcError('SVC_VERSION_NOT_FOUND', `Service '${service.name}' was never updated.`, {
        hint: `To change it: svc serve update ${service.name} FILE`,
      });
    if (earlier === undefined || to === service.version) {
      const known = kept.map(({ version }) => version).filter((version) => version !== service.version);
      throw new SvcError('SVC_VERSION_NOT_FOUND', `Service '${service.name}' has no version ${to} to go back to.`, {
        hint: `${known.length === 0 ? 'It was never updated.' : `Choose one of ${known.join(', ')}.`} See: svc serve versions ${service.name}`,
      });
    }
    await checkTlsFiles(
      earlier.task,
      { source: earlier.source, file: '-', envs: earlier.task.envs, secrets: earlier.task.secrets },
      context.clock.now(),
    );
    await refuseMovedEndpoint(context, service, earlier.task);
    await checkOffers(context, earlier.task, { acceptsFull: true });
    const next = { version: service.version + 1, task: { ...earlier.task, filesVersion: filesVersionOf(earlier) } };
    const plan = await planOf(context, service, next, { source: earlier.source, kept, mode: 'rolling' });
    if (basis.dryRun || plan.version === null) return plan;
    const message = `Rolled back to version ${to}, as version ${next.version}.`;
    await addVersion(context, service, { ...next, source: earlier.source }, { message, mode: 'rolling' });
    return plan;
  });
}

/** Removes copies of a controller that died while it copied. A dry run may be copying beside this one. */
async function removeOldCopies(dir: string, isDryRun: boolean): Promise<void> {
  if (isDryRun) return;
  const left = (await readdir(dir)).filter((name) => /^\.v\d+-.*\.tmp$/.test(name));
  for (const name of left) await rm(join(dir, name), { recursive: true, force: true });
}

/** The version that a rollback returns to: of a stopped update the one that stayed, else the one that worked before. */
function earlierVersion(service: ServiceRecord): number {
  const proven = provenVersionOf(service);
  if (proven > 0 && proven !== service.version) return proven;
  return service.memory.provenBefore ?? service.version - 1;
}

/** Allows one change of a service at a time. */
async function whileUpdating<Result>(
  { creating }: DaemonContext,
  { name, key, version, desired }: ServiceRecord,
  { dryRun, from }: UpdateBasis,
  work: () => Promise<Result>,
): Promise<Result> {
  if (desired === 'down') throw new SvcError('SVC_SERVICE_NOT_FOUND', `Service '${name}' is being terminated.`);
  if (from !== undefined && from !== version) throw updateConflict(name);
  if (dryRun) return work();
  if (creating.has(key)) throw updateConflict(name);
  creating.add(key);
  try {
    return await work();
  } finally {
    creating.delete(key);
  }
}

function withPolicy(task: Task, change: PolicyChange = {}): Task {
  const { service } = task;
  if (service === undefined) return task;
  const { mode, surge, maxUnavailable, steps, bakeSeconds, session } = service.update;
  const update: UpdatePolicy = {
    mode: change.mode ?? mode,
    surge: change.surge ?? surge,
    maxUnavailable: change.maxUnavailable ?? maxUnavailable,
    steps: change.steps ?? steps,
    bakeSeconds: change.bakeSeconds ?? bakeSeconds,
    ...(session !== undefined && { session }),
  };
  if (!canReplace(update))
    throw new SvcError('SVC_USAGE', 'With a surge of 0 and no unavailable replica, no replica could be replaced.', {
      hint: 'Add --max-unavailable 1, or a surge of 1 or more.',
    });
  return { ...task, service: { ...service, update } };
}

/** Clients know the address of the endpoint, so an update keeps it. */
async function refuseMovedEndpoint({ store }: DaemonContext, service: ServiceRecord, { service: spec }: Task): Promise<void> {
  const moved = (what: string): SvcError =>
    new SvcError('SVC_NOT_SUPPORTED', `The endpoint of service '${service.name}' ${what}; an update does not change that.`, {
      hint: `Remove the setting from the file, or take the service down and put it up again: svc serve down ${service.name}`,
    });
  const port = spec?.loadBalancer.port;
  if (port !== undefined && port !== service.port) throw moved(`is at port ${service.port}`);
  if (spec?.expose === true && service.host === '127.0.0.1') throw moved('listens on this machine alone');
  const current = (await store.services.version(service.name, service.version))?.task.service;
  if (spec?.expose === false && current?.expose === true) throw moved('listens on all addresses');
  // One balancer serves the replicas of both versions.
  if (spec !== undefined && current !== undefined && spec.protocol !== current.protocol)
    throw moved(`speaks ${current.protocol} to its replicas`);
  if (spec === undefined) return;
  const open = new Set(current === undefined ? [] : sidePortsOf(service.host, current.loadBalancer).map(({ port: own }) => own));
  const taken = new Set((await store.services.list()).map((one) => one.port));
  for (const sidePort of sidePortsOf(service.host, spec.loadBalancer)) if (!open.has(sidePort.port)) await checkSidePort(sidePort, taken);
}

/** The newest version whose copy of the working files equals this one. */
async function versionWithFiles(
  kept: readonly VersionRecord[],
  hasSameFiles: (version: number) => Promise<boolean>,
): Promise<number | undefined> {
  for (const version of new Set(kept.toReversed().map(filesVersionOf))) if (await hasSameFiles(version)) return version;
  return undefined;
}

/** The path of the service file in the working directory, as both were on the user's machine; undefined: it is not in there. */
function taskFileOf({ workdir }: Task, file: string): string | undefined {
  const path = workdir?.kind === 'path' ? relative(workdir.path, file) : '..';
  return path.startsWith('..') ? undefined : path;
}

async function planOf(
  context: DaemonContext,
  service: ServiceRecord,
  next: TaskVersion,
  { source, kept, mode }: Pick<VersionRecord, 'source'> & { readonly kept: readonly VersionRecord[]; readonly mode?: UpdateMode },
): Promise<UpdatePlan> {
  const current = kept.find(({ version }) => version === service.version);
  const replicas = await context.store.replicas.list(service.name);
  const replaced = replicas.filter(({ state, version }) => {
    const own = kept.find((one) => one.version === version);
    return isAlive(state) && (own === undefined || !isSameProgram(own, next));
  });
  const update = { ...(next.task.service?.update ?? defaultUpdate), ...(mode !== undefined && { mode }) };
  const noCapacity = replaced.length === 0 ? undefined : await whyNoSurge(context, service, { next, update, replicas });
  return {
    // The same file again gives a stopped update another try.
    version: current !== undefined && !service.memory.gaveUp && isSameVersion(current, next) ? null : next.version,
    from: service.version,
    changes:
      current === undefined ? [] : describeChanges(current, { task: next.task, source }, filesVersionOf(current) !== filesVersionOf(next)),
    replaced: replaced.length,
    keepsReplicas: current !== undefined && isSameProgram(current, next),
    update,
    ...(noCapacity !== undefined && { noCapacity }),
  };
}

/** Writes the version with the service that points to it. The new version gets a fresh chance after failures. */
async function addVersion(
  { store, clock }: DaemonContext,
  seen: ServiceRecord,
  { version, task, source }: Pick<VersionRecord, 'version' | 'task' | 'source'>,
  { message, mode }: { readonly message: string; readonly mode: UpdateMode },
): Promise<void> {
  const at = clock.now();
  const record = { service: seen.name, version, task, source, createdAt: at };
  const added = await compareAndSwap(
    () => store.services.get(seen.name, seen.key),
    (service) => {
      if (service.version !== seen.version || service.desired === 'down') throw updateConflict(seen.name);
      const proven = provenVersionOf(service);
      const from = service.memory.update?.from ?? service.version;
      // Failures from before versions were recorded belong to the present one.
      const failures = service.memory.failures.map((failure) => ({ version: service.version, ...failure }));
      const memory = {
        ...service.memory,
        failures,
        gaveUp: false,
        update: { from, at, mode },
        ...(proven > 0 && { provenVersion: proven }),
      };
      const event = subjectEvent(service, { at, from: service.state, to: service.state, cause: 'update', message });
      return store.services.addVersion(service, { version, reason: null, memory }, record, event);
    },
  );
  if (added === undefined) throw new SvcError('SVC_SERVICE_NOT_FOUND', `Service '${seen.name}' was removed meanwhile.`);
}

function updateConflict(name: string): SvcError {
  return new SvcError('SVC_UPDATE_CONFLICT', `Service '${name}' is being changed by another command at this moment.`);
}
