import { locationName } from '../../domain/location-name.ts';
import { kindOf } from '../../domain/placement.ts';
import type { Resources, Task } from '../../domain/task.ts';
import type { MachineSpec } from '../../providers/provider.ts';
import { obtainMachine, type GivenMachine } from '../../provision/acquire-machine.ts';
import { bootstrap } from '../../provision/bootstrap.ts';
import { taskMachineSpec } from '../../provision/machine-spec.ts';
import { fileProvisionLog, type ProvisionLog } from '../../provision/provision-log.ts';
import { describeStep, whyLost, type SearchStep } from '../../provision/search-steps.ts';
import { isoTime } from '../../shared/clock.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { unlessAborted } from '../../shared/deadline.ts';
import type { Change, ReplicaRecord } from '../../domain/records.ts';
import { filesVersionOf } from '../../domain/rollout.ts';
import { describeZone } from '../../domain/spot/describe-zone.ts';
import { searchOf } from '../../domain/spot/known-markets.ts';
import { zoneOrderOf } from '../../domain/spot/hedged-service.ts';
import { alternativesFor, spotPlacerOf } from '../../domain/spot/markets.ts';
import { spotZoneOf } from '../../domain/spot/placer.ts';
import { missingTarget } from '../../domain/replica/replica-capacity.ts';
import { jobName } from './replica-program.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import { claimChange, findMachines, offerOf, recoverMachine, replicaTags } from '../../provision/recorded-machines.ts';
import type { ServiceContext } from './service-context.ts';

/**
 * Takes a replica from its intent to a machine with a started program. Each step is recorded before it is taken and can
 * be repeated. After a crash the replica continues with the same machine.
 */
export async function launchReplica(context: ServiceContext, handle: ReplicaHandle, signal: AbortSignal): Promise<void> {
  const log = fileProvisionLog(context.files.provisionLog(handle.id), context.clock);
  const { provider, machineId } = await machineFor(context, handle, log, signal);
  await handle.patch({ machineId });
  const { record } = handle;
  const task = await context.task(record.version);
  const filesVersion = filesVersionOf({ version: record.version, task });
  await unlessAborted(context.filesRestored ?? Promise.resolve(), signal);
  await bootstrap(
    { provider, id: machineId },
    {
      task,
      snapshot: { dir: context.files.versionDir(filesVersion), name: `v${filesVersion}` },
      delivery: await context.deployment.delivery(provider, record.offer?.region),
      jobName,
      identity: {
        owner: context.name,
        replicaId: record.id,
        taskId: `svc-${isoTime(record.createdAt).slice(0, 19).replaceAll(':', '-').replace('T', '-')}_${context.name}_${record.id}`,
        port: task.service?.replicaPort,
        gpus: record.offer?.gpus ?? 0,
      },
      log,
      isolated: true,
      keepExtra: false,
    },
    signal,
  );
  const port = task.service?.replicaPort ?? 0;
  const what = task.numNodes > 1 ? `with its ${task.numNodes} nodes is up` : 'is up';
  const message = `Machine ${machineId} at ${locationName(record.offer ?? unknownLocation)} ${what}; the program was started.`;
  // Requests and probes go to the first node.
  const address = await provider.remote(machineId).address(port, { signal });
  await handle.transition({ type: 'machine-up' }, { cause: 'machine-up', message }, { address, reason: null });
  const untargeted = task.service === undefined ? undefined : missingTarget(task.service, handle.record.offer);
  if (untargeted !== undefined) await handle.patch({}, { cause: 'no-target', message: untargeted });
}

const unknownLocation = { provider: '?', region: '?' };

/** Returns the machine accepted before a crash, or a new one. The machine runs. */
async function machineFor(context: ServiceContext, handle: ReplicaHandle, log: ProvisionLog, signal: AbortSignal): Promise<GivenMachine> {
  const { record } = handle;
  const found = await findEarlier(context, record, log, signal);
  const task = await context.task(record.version);
  const alternatives = alternativesFor(task.resources, record.market);
  return obtainMachine(
    {
      alternatives,
      nodes: task.numNodes,
      providerConfig: task.providerConfig,
      placer: spotPlacerOf(task),
      search: searchOf(task),
      group: `${searchOf(task)} ${record.version} ${record.market}`,
      zoneOrder: zoneOrderOf(
        task,
        () => context.history.memory,
        () => context.zones.histories,
        () => context.clock.now(),
      ),
      readySeconds: () => context.wakeOrder(task),
      providers: () => context.states(),
      history: context.history,
      occupied: () => context.occupied(),
      mostUsd: () => context.highestPrice(record.key),
      spec: ({ alternative }) => machineSpec(context, record.id, task, alternatives.choices[alternative]),
      key: record.key,
      clock: context.clock,
      background: context.background,
      async step(step) {
        const message = [describeStep(step), ...zoneText(context, task, step)].join(' ');
        log(message);
        recordZone(context, step);
        await recordStep(handle, step, message, task.numNodes);
      },
    },
    found,
    signal,
  );
}

/** The history behind the hedge's choice of a zone. */
function zoneText({ zones, clock }: ServiceContext, task: Task, step: SearchStep): readonly string[] {
  if (step.type !== 'asking' || !step.offer.spot || spotPlacerOf(task) !== 'hedge') return [];
  return [`The zone: ${describeZone(zones.histories[spotZoneOf(step.offer)], clock.now())}.`];
}

/** Only a lack of machines says something about a zone: a quota or a missing right is the account's. */
function recordZone(context: ServiceContext, step: SearchStep): void {
  const { zones } = context;
  if (step.type === 'given') zones.accepted(step.offer);
  if (step.type !== 'refused' || (step.refused.kind !== 'capacity' && step.refused.kind !== 'price')) return;
  const zone = spotZoneOf(step.offer);
  zones.refused(
    step.offer,
    context.occupied().some((one) => one.spot !== false && spotZoneOf(one) === zone),
  );
}

/** The machine that an earlier search of this replica received. */
async function findEarlier(
  context: ServiceContext,
  record: ReplicaRecord,
  log: ProvisionLog,
  signal: AbortSignal,
): Promise<GivenMachine | undefined> {
  // The state changes before the first provider is asked.
  if (record.state === 'PENDING') return undefined;
  const found = recoverMachine(await findMachines(context, record, replicaTags(context, record.id), signal), record, context);
  if (found !== undefined) log(`Going on with machine ${found.machineId} at ${locationName(found.offer)}`);
  return found;
}

function machineSpec(context: ServiceContext, replicaId: number, task: Task, resources: Resources | undefined): MachineSpec {
  return {
    ...taskMachineSpec(task, resources),
    tags: {
      'svc-service': context.name,
      ...replicaTags(context, replicaId),
      ...(context.controllerHost !== undefined && { 'svc-owner': context.controllerHost.key }),
    },
    clients: context.controllerHost?.addresses ?? [],
  };
}

const stepCauses: Readonly<Record<Exclude<SearchStep['type'], 'detail'>, string>> = {
  asking: 'launch',
  refused: 'launch-refused',
  given: 'machine-created',
  booting: 'booting',
  lost: 'boot-failed',
  surplus: 'machine-released',
  'too-dear': 'cost-limit',
  waiting: 'waiting-for-capacity',
};

async function recordStep(handle: ReplicaHandle, step: SearchStep, message: string, nodes: number): Promise<void> {
  if (step.type === 'detail') return;
  const explanation = { cause: stepCauses[step.type], message };
  const change = { ...claimChange(step, nodes), ...replicaChange(step, handle.record) };
  const isStarted = step.type === 'asking' && (await handle.transition({ type: 'launch-started' }, explanation, change));
  if (!isStarted) await handle.patch(change, explanation);
}

/** Where a replica's record differs from `claimChange`. */
function replicaChange(step: SearchStep, { offer: recorded }: ReplicaRecord): Change<ReplicaRecord> {
  // The event's message names the machine.
  if (step.type === 'lost') return { reason: whyLost(step) };
  const isRefused = step.type === 'refused' && recorded !== null && kindOf(offerOf(recorded)) === kindOf(step.offer);
  return isRefused ? { offer: null } : {};
}

/** Describes a permanent launch failure without the replica's number: equal causes have equal texts. */
export function launchFailure(record: ReplicaRecord, error: unknown): string {
  // The error already names the location, and its hint gives the next step.
  if (error instanceof SvcError && error.code === 'SVC_BOOT_FAILED') return `${error.message} ${error.hint}`;
  const location = record.offer === null ? '' : ` at ${locationName(record.offer)}`;
  return `Launching it${location} failed: ${messageOf(error)}`;
}
