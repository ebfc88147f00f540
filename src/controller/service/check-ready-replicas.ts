import { withDeadline } from '../../shared/deadline.ts';
import type { ReplicaRecord } from '../../domain/records.ts';
import { jobStatus } from '../../provision/job.ts';
import { machineNodes } from '../../provision/node-jobs.ts';
import { jobName } from './replica-program.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { replicaTags } from '../../provision/recorded-machines.ts';
import type { ServiceContext } from './service-context.ts';

/**
 * How long a provider may take to report whether a replica's machine and program run, ms. A replica stays in the
 * endpoint set when its provider does not answer.
 */
const askMs = 2_000;
const noAnswer = (): Error => new Error(`no answer within ${askMs / 1_000} s`);

/**
 * Asks the providers, after a restart of the reconciler, whether the ready replicas still run. The reconciler has
 * published its first endpoint set before. This removes dead replicas from the set and from listings at once. The
 * reconciler decides later what happens to them.
 */
export async function checkReadyReplicas(context: ServiceContext, handles: readonly ReplicaHandle[]): Promise<void> {
  const ready = handles.filter(({ state, record }) => state === 'READY' && record.address !== null);
  await Promise.all(ready.map((handle) => check(context, handle)));
}

async function check(context: ServiceContext, handle: ReplicaHandle): Promise<void> {
  if (await mayLive(context, handle.record)) return;
  context.reports.report(handle.id, { isGone: true });
  const message = 'Its program ended while no reconciler ran.';
  await handle.transition({ type: 'probe-failed' }, { cause: 'found-dead', message });
}

async function mayLive(context: ServiceContext, replica: ReplicaRecord): Promise<boolean> {
  try {
    return await withDeadline(context.clock, askMs, (signal) => isRunning(context, replica, signal), noAnswer, context.background);
  } catch (error) {
    context.log.warn({ err: error }, 'could not ask a provider about a replica');
    return true;
  }
}

async function isRunning(context: ServiceContext, { id, version, offer, machineId }: ReplicaRecord, signal: AbortSignal): Promise<boolean> {
  if (offer === null) return false;
  const provider = await context.provider(offer.provider);
  const machines = await provider.list(replicaTags(context, id), { signal });
  const machine = machines.find((one) => one.id === machineId);
  if (machine === undefined) return false;
  const { numNodes } = await context.task(version);
  const nodes = await machineNodes(provider, machine.id, numNodes, signal);
  const statuses = await Promise.all(nodes.map(({ remote }) => jobStatus(remote, jobName)));
  return statuses.every(({ phase }) => phase === 'run');
}
