import type { ReplicaRecord } from '../../store/records.ts';
import { jobStatus } from '../../provision/job.ts';
import { jobName } from './replica-job.ts';
import { ReplicaHandle } from './replica-handle.ts';
import { replicaTags } from '../recorded-machines.ts';
import { rotationMember } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';

/** How long a place may take to say whether a replica lives, ms; one that cannot be asked goes on serving while it is being looked at. */
const askMs = 2_000;

/**
 * After a restart: what was ready and lives goes on serving; what died meanwhile is taken out at once, so that neither the endpoint nor a listing
 * claims otherwise. What becomes of it is decided by the replica's driver.
 */
export async function adoptReplicas(context: ServiceContext, replicas: readonly ReplicaRecord[]): Promise<void> {
  const ready = replicas.filter((replica) => replica.state === 'READY');
  await Promise.all(ready.map((replica) => adopt(context, replica)));
  context.rotation.announce();
}

async function adopt(context: ServiceContext, replica: ReplicaRecord): Promise<void> {
  if (replica.address === null) return;
  if (await mayLive(context, replica)) {
    const { service } = await context.task(replica.version);
    if (service !== undefined) context.rotation.serve(rotationMember(replica, replica.address, service));
    return;
  }
  const message = 'Its program ended while nobody was looking.';
  await new ReplicaHandle(context, replica).happen({ type: 'probe-failed' }, { cause: 'found-dead', message });
}

async function mayLive(context: ServiceContext, { id, place, machineId }: ReplicaRecord): Promise<boolean> {
  if (place === null) return false;
  const tooLong = new AbortController();
  const cancel = context.clock.after(askMs, () => tooLong.abort());
  try {
    const provider = await context.provider(place.provider);
    const machines = await provider.list(replicaTags(context, id), { signal: tooLong.signal });
    const machine = machines.find((one) => one.id === machineId);
    return machine !== undefined && (await jobStatus(provider.remote(machine.id), jobName)).phase === 'run';
  } catch (error) {
    context.log.warn({ err: error }, 'a place could not be asked about a replica');
    return true;
  } finally {
    cancel();
  }
}
