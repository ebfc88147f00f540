import { existsSync } from 'node:fs';
import type { Offer } from '../../providers/provider.ts';
import { bootstrap } from '../../provision/bootstrap.ts';
import { taskEnvironment } from '../../provision/environment.ts';
import { fileMounts } from '../../provision/file-mounts.ts';
import { acquireMachine, placeName, waitUntilRunning, type GivenMachine } from '../../provision/machine.ts';
import { describeOffer } from '../../provision/offers.ts';
import { fileProvisionLog, type ProvisionLog } from '../../provision/provision-log.ts';
import { isoTime } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';
import type { PlaceRecord, ReplicaRecord } from '../../store/records.ts';
import { missingTarget } from './replica-capacity.ts';
import { jobName } from './replica-job.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import type { ServiceContext } from './service-context.ts';

/**
 * From the intent to a machine on which the program has been told to start. Every step is recorded before it is taken and safe to repeat, so
 * that after a crash the same replica goes on with the same machine.
 */
export async function launchReplica(context: ServiceContext, handle: ReplicaHandle, signal: AbortSignal): Promise<void> {
  const log = fileProvisionLog(context.files.provisionLog(handle.id), context.clock);
  const { provider, machineId } = await machineFor(context, handle, log, signal);
  await handle.note({ machineId });
  await waitUntilRunning(provider, machineId, context.clock, signal);
  const { record } = handle;
  const task = await context.task(record.version);
  const remote = provider.remote(machineId);
  const snapshot = context.files.workdirSnapshot(record.version);
  await bootstrap(
    remote,
    {
      task,
      workdir: existsSync(snapshot) ? snapshot : undefined,
      mounts: fileMounts(task, context.files.mountSnapshot(record.version)),
      jobName,
      withSetup: true,
      env: taskEnvironment(task, {
        owner: context.name,
        replicaId: record.id,
        taskId: `svc-${isoTime(record.createdAt).slice(0, 19).replaceAll(':', '-').replace('T', '-')}_${context.name}_${record.id}`,
        port: task.service?.replicaPort,
        gpus: record.place?.gpus ?? 0,
      }),
      log,
      isolated: true,
      keepExtra: false,
    },
    signal,
  );
  const port = task.service?.replicaPort ?? 0;
  const message = `Machine ${machineId} at ${placeName(record.place ?? unknownPlace)} is up; the program was told to start.`;
  await handle.happen({ type: 'machine-up' }, { cause: 'machine-up', message }, { address: await remote.address(port, { signal }) });
  const untargeted = task.service === undefined ? undefined : missingTarget(task.service, handle.record.place);
  if (untargeted !== undefined) await handle.note({}, { cause: 'no-target', message: untargeted });
}

const unknownPlace = { provider: '?', region: '?' };

/** The machine that was accepted before a crash, or a new one. */
async function machineFor(
  context: ServiceContext,
  handle: ReplicaHandle,
  log: ProvisionLog,
  signal: AbortSignal,
): Promise<Pick<GivenMachine, 'provider' | 'machineId'>> {
  const { record } = handle;
  const { place } = record;
  if (place !== null) {
    const provider = await context.provider(place.provider);
    // The place may have accepted before the answer was recorded: it is found by the key, so that none is asked for twice.
    const [found] = await provider.list({ 'svc-key': record.key }, { signal });
    if (found !== undefined) {
      log(`Going on with machine ${found.id} at ${placeName(place)}`);
      return { provider, machineId: found.id };
    }
  }
  const task = await context.task(record.version);
  return acquireMachine(
    {
      alternatives: task.resources,
      providers: await context.providers(),
      history: context.history,
      occupied: () => context.occupied(),
      spec: {
        tags: { 'svc-service': context.name, 'svc-service-key': context.key, 'svc-replica': String(record.id), 'svc-key': record.key },
        labels: task.resources.choices[0]?.labels ?? {},
        ports: task.resources.choices[0]?.ports ?? [],
        clients: [],
        diskSizeGb: task.resources.choices[0]?.diskSizeGb ?? 0,
        diskTier: task.resources.choices[0]?.diskTier,
        imageId: task.resources.choices[0]?.imageId,
        role: 'replica',
      },
      key: record.key,
      clock: context.clock,
      log,
      intend: (offer) => intend(handle, offer),
      async refused(offer, reason) {
        const message = `${placeName(offer)} refused: ${reason}`;
        await handle.note({ place: null, reason: message }, { cause: 'place-refused', message });
      },
      async waiting(until, reason) {
        const message = `No place gives a machine now; asking again at ${isoTime(until)}. Last answer: ${reason}`;
        log(message);
        await handle.note({ reason: message }, { cause: 'waiting-for-capacity', message });
      },
    },
    signal,
  );
}

async function intend(handle: ReplicaHandle, offer: Offer): Promise<void> {
  const place = placeRecord(offer);
  const message = `Asking ${placeName(offer)} for ${offer.instanceType} (${offer.hourlyUsd.toFixed(2)} $/h).`;
  const started = await handle.happen({ type: 'launch-started' }, { cause: 'launch', message }, { place, reason: null });
  if (!started) await handle.note({ place, reason: null }, { cause: 'launch', message });
}

/** An offer as it is kept with the replica. */
export function placeRecord(offer: Offer): PlaceRecord {
  return {
    provider: offer.provider,
    region: offer.region,
    zone: offer.zone ?? null,
    instanceType: offer.instanceType,
    resources: describeOffer(offer),
    gpus: offer.accelerator?.count ?? 0,
    ...(offer.accelerator === undefined ? {} : { accelerator: offer.accelerator.name }),
    spot: offer.spot,
    hourlyUsd: offer.hourlyUsd,
  };
}

/** A sentence for a launch that failed for good. */
export function launchFailure(record: ReplicaRecord, error: unknown): string {
  const where = record.place === null ? '' : ` at ${placeName(record.place)}`;
  return `Launching replica ${record.id}${where} failed: ${messageOf(error)}`;
}
