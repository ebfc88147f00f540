import { existsSync } from 'node:fs';
import { placeName } from '../../domain/place-name.ts';
import { kindOf } from '../../domain/placement.ts';
import type { Resources, Task } from '../../domain/task.ts';
import type { MachineSpec, Offer } from '../../providers/provider.ts';
import { obtainMachine, type GivenMachine } from '../../provision/acquire-machine.ts';
import { bootstrap } from '../../provision/bootstrap.ts';
import { taskEnvironment } from '../../provision/environment.ts';
import { fileMounts } from '../../provision/file-mounts.ts';
import { giveBack } from '../../provision/machine.ts';
import { replicaMachineSpec } from '../../provision/machine-spec.ts';
import { machineNodes } from '../../provision/node-jobs.ts';
import { describeOffer } from '../../provision/offers.ts';
import { fileProvisionLog, type ProvisionLog } from '../../provision/provision-log.ts';
import { describeStep, type SearchStep } from '../../provision/search-steps.ts';
import { isoTime } from '../../shared/clock.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import type { PlaceRecord, ReplicaRecord } from '../../store/records.ts';
import { missingTarget } from './replica-capacity.ts';
import { jobName } from './replica-job.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { findMachines, isClaimed, offerOf, replicaTags } from '../recorded-machines.ts';
import type { ServiceContext } from './service-context.ts';

/**
 * From the intent to a machine on which the program has been told to start. Every step is recorded before it is taken and safe to repeat, so
 * that after a crash the same replica goes on with the same machine.
 */
export async function launchReplica(context: ServiceContext, handle: ReplicaHandle, signal: AbortSignal): Promise<void> {
  const log = fileProvisionLog(context.files.provisionLog(handle.id), context.clock);
  const { provider, machineId } = await machineFor(context, handle, log, signal);
  await handle.note({ machineId });
  const { record } = handle;
  const task = await context.task(record.version);
  const nodes = await machineNodes(provider, machineId, task.numNodes, signal);
  await unlessAborted(context.filesThere ?? Promise.resolve(), signal);
  const snapshot = context.files.workdirSnapshot(record.version);
  await bootstrap(
    nodes,
    {
      task,
      workdir: existsSync(snapshot) ? { path: snapshot, name: `v${record.version}-workdir` } : undefined,
      mounts: fileMounts(task, context.files.mountSnapshot(record.version), `v${record.version}`),
      delivery: await context.deployment.delivery(provider, record.place?.region),
      jobName,
      withSetup: true,
      env: ({ rank }, all) =>
        taskEnvironment(task, {
          owner: context.name,
          replicaId: record.id,
          taskId: `svc-${isoTime(record.createdAt).slice(0, 19).replaceAll(':', '-').replace('T', '-')}_${context.name}_${record.id}`,
          port: task.service?.replicaPort,
          gpus: record.place?.gpus ?? 0,
          node: { rank, ips: all.map(({ ip }) => ip) },
        }),
      log,
      isolated: true,
      keepExtra: false,
    },
    signal,
  );
  const port = task.service?.replicaPort ?? 0;
  const what = nodes.length > 1 ? `with its ${nodes.length} nodes is up` : 'is up';
  const message = `Machine ${machineId} at ${placeName(record.place ?? unknownPlace)} ${what}; the program was told to start.`;
  // Requests go to the first node, as probes do.
  const address = await provider.remote(machineId).address(port, { signal });
  await handle.happen({ type: 'machine-up' }, { cause: 'machine-up', message }, { address, reason: null });
  const untargeted = task.service === undefined ? undefined : missingTarget(task.service, handle.record.place);
  if (untargeted !== undefined) await handle.note({}, { cause: 'no-target', message: untargeted });
}

const unknownPlace = { provider: '?', region: '?' };

/** The machine that was accepted before a crash, or a new one; it runs. */
async function machineFor(context: ServiceContext, handle: ReplicaHandle, log: ProvisionLog, signal: AbortSignal): Promise<GivenMachine> {
  const { record } = handle;
  const found = await machineFromBefore(context, record, log, signal);
  const task = await context.task(record.version);
  const { resources } = task;
  return obtainMachine(
    {
      alternatives: resources,
      nodes: task.numNodes,
      placeConfig: task.placeConfig,
      places: () => context.states(),
      history: context.history,
      occupied: () => context.occupied(),
      spec: ({ alternative }) => machineSpec(context, record.id, task, resources.choices[alternative]),
      key: record.key,
      clock: context.clock,
      background: context.background,
      async step(step) {
        log(describeStep(step));
        await recordStep(handle, step, task.numNodes);
      },
    },
    found,
    signal,
  );
}

/**
 * What a search before this one, which a crash or a passing fault ended, was given at the place it recorded last: it is found by the key, so that
 * none is asked for twice. What other places gave it is given back.
 */
async function machineFromBefore(
  context: ServiceContext,
  record: ReplicaRecord,
  log: ProvisionLog,
  signal: AbortSignal,
): Promise<GivenMachine | undefined> {
  // Its state changes before the first place is asked.
  if (record.state === 'PENDING') return undefined;
  const machines = await findMachines(context, record, replicaTags(context, record.id), signal);
  const kept = machines.find((machine) => isClaimed(machine, record));
  for (const { provider, id } of machines.filter((machine) => machine !== kept)) {
    context.history.keepBusy(giveBack(provider, { id }, context.clock, context.background));
  }
  if (kept === undefined || record.place === null) return undefined;
  log(`Going on with machine ${kept.id} at ${placeName(record.place)}`);
  return { provider: kept.provider, offer: offerOf(record.place), machineId: kept.id, askedAt: context.clock.monotonic() };
}

/** What is wanted of the machine of a replica, as far as the alternative that it is for says. */
function machineSpec(context: ServiceContext, replicaId: number, task: Task, resources: Resources | undefined): MachineSpec {
  return {
    ...replicaMachineSpec(task, resources),
    tags: {
      'svc-service': context.name,
      ...replicaTags(context, replicaId),
      ...(context.host !== undefined && { 'svc-owner': context.host.key }),
    },
    clients: context.host?.addresses ?? [],
  };
}

/** Writes a step of the search into the record and the history of the replica. */
async function recordStep(handle: ReplicaHandle, step: SearchStep, nodes: number): Promise<void> {
  const message = describeStep(step);
  switch (step.type) {
    case 'asking': {
      const change = { place: placeRecord(step.offer, nodes), machineId: null, reason: null };
      const started = await handle.happen({ type: 'launch-started' }, { cause: 'launch', message }, change);
      return started ? undefined : handle.note(change, { cause: 'launch', message });
    }
    case 'given':
      return handle.note(
        { place: placeRecord(step.offer, nodes), machineId: step.machineId, reason: null },
        { cause: 'place-gave', message },
      );
    case 'refused': {
      const { place } = handle.record;
      const isRecordedPlace = place !== null && kindOf(offerOf(place)) === kindOf(step.offer);
      return handle.note({ reason: message, ...(isRecordedPlace && { place: null }) }, { cause: 'place-refused', message });
    }
    case 'booting':
      return handle.note({ reason: message }, { cause: 'booting', message });
    case 'detail':
      return undefined;
    case 'lost':
      return handle.note({ place: null, machineId: null, reason: step.reason }, { cause: 'boot-failed', message });
    case 'surplus':
      return handle.note({}, { cause: 'given-back', message });
    case 'waiting':
      return handle.note({ reason: message }, { cause: 'waiting-for-capacity', message });
  }
}

/** An offer as it is kept with a replica of so many nodes. */
export function placeRecord(offer: Offer, nodes: number): PlaceRecord {
  return {
    provider: offer.provider,
    region: offer.region,
    zone: offer.zone ?? null,
    instanceType: offer.instanceType,
    resources: describeOffer(offer, nodes),
    cpus: offer.cpus,
    gpus: offer.accelerator?.count ?? 0,
    ...(offer.accelerator === undefined ? {} : { accelerator: offer.accelerator.name }),
    spot: offer.spot,
    hourlyUsd: offer.hourlyUsd * nodes,
  };
}

/** A sentence for a launch that failed for good; without the number of the replica, so that the same cause reads the same each time. */
export function launchFailure(record: ReplicaRecord, error: unknown): string {
  // What can be done about it is for the user to do, and its place is named already.
  if (error instanceof SvcError && error.code === 'SVC_BOOT_FAILED') return `${error.message} ${error.hint}`;
  const where = record.place === null ? '' : ` at ${placeName(record.place)}`;
  return `Launching it${where} failed: ${messageOf(error)}`;
}
