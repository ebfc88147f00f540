import { withDeadline } from '../../shared/deadline.ts';
import type { ReplicaRecord } from '../../store/records.ts';
import { jobStatus } from '../../provision/job.ts';
import { machineNodes } from '../../provision/node-jobs.ts';
import { jobName } from './replica-job.ts';
import { ReplicaHandle } from './replica-handle.ts';
import { replicaTags } from '../recorded-machines.ts';
import { rotationMember, type RotationMember } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';

/** How long a place may take to say whether a replica lives, ms; one that cannot be asked goes on serving while it is being looked at. */
const askMs = 2_000;
const noAnswer = (): Error => new Error(`no answer within ${askMs / 1_000} s`);

/**
 * After a restart: what was ready goes on serving from the first set on, as a balancer may be new and know nothing; what died meanwhile is taken out as soon
 * as its place has said so, so that neither the endpoint nor a listing claims otherwise. What becomes of it is decided by the replica's driver.
 */
export async function adoptReplicas(context: ServiceContext, replicas: readonly ReplicaRecord[]): Promise<void> {
  const ready = replicas.filter(({ state, address }) => state === 'READY' && address !== null);
  context.rotation.begin((await Promise.all(ready.map((replica) => memberOf(context, replica)))).filter((member) => member !== undefined));
  await Promise.all(ready.map((replica) => look(context, replica)));
}

async function memberOf(context: ServiceContext, replica: ReplicaRecord): Promise<RotationMember | undefined> {
  const { service } = await context.task(replica.version);
  return service === undefined || replica.address === null ? undefined : rotationMember(replica, replica.address, service);
}

async function look(context: ServiceContext, replica: ReplicaRecord): Promise<void> {
  if (await mayLive(context, replica)) return;
  context.rotation.remove(replica.id);
  const message = 'Its program ended while nobody was looking.';
  await new ReplicaHandle(context, replica).happen({ type: 'probe-failed' }, { cause: 'found-dead', message });
}

async function mayLive(context: ServiceContext, replica: ReplicaRecord): Promise<boolean> {
  try {
    return await withDeadline(context.clock, askMs, (signal) => isRunning(context, replica, signal), noAnswer, context.background);
  } catch (error) {
    context.log.warn({ err: error }, 'a place could not be asked about a replica');
    return true;
  }
}

async function isRunning(context: ServiceContext, { id, version, place, machineId }: ReplicaRecord, signal: AbortSignal): Promise<boolean> {
  if (place === null) return false;
  const provider = await context.provider(place.provider);
  const machines = await provider.list(replicaTags(context, id), { signal });
  const machine = machines.find((one) => one.id === machineId);
  if (machine === undefined) return false;
  const { numNodes } = await context.task(version);
  const nodes = await machineNodes(provider, machine.id, numNodes, signal);
  const statuses = await Promise.all(nodes.map(({ remote }) => jobStatus(remote, jobName)));
  return statuses.every(({ phase }) => phase === 'run');
}
