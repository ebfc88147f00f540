import type { RouteReply } from '../api/contract.ts';
import { locationsOf } from '../domain/placement/occupied.ts';
import { spotPlacerOf } from '../domain/spot/markets.ts';
import { memoryFor, searchOf } from '../domain/spot/known-markets.ts';
import { wakeOrder } from '../domain/placement/wake.ts';
import { zoneOrderOf } from '../domain/spot/hedged-service.ts';
import { describeZone } from '../domain/spot/describe-zone.ts';
import { planPlacement } from '../provision/placement-plan.ts';
import { describeAddress } from '../shared/replica-address.ts';
import type { EventRecord, ServiceRecord } from '../domain/records.ts';
import type { DaemonContext } from './daemon-context.ts';
import { eventView } from './views.ts';

/** Event causes that belong to the search for a machine: see `recordStep` in `service/replica-launch.ts`. */
const searchCauses = new Set([
  'replica-requested',
  'launch',
  'launch-refused',
  'machine-created',
  'booting',
  'boot-failed',
  'machine-released',
  'waiting-for-capacity',
  'cost-limit',
  'machine-up',
  'provision',
  'address',
  'interruption-notice',
  'rebalance-recommendation',
  'interruption',
  'preempted',
  'machine-lost',
]);

const fastestNote =
  'No replica is ready: for waiting requests, the location with the shortest expected time to a ready replica comes first (wake: fastest).';

/** How the machines of a service were found, from its history, and which offers exist now for one more replica. */
export async function explainService(
  context: DaemonContext,
  service: ServiceRecord,
  { id, all }: { readonly id?: number | undefined; readonly all: boolean },
): Promise<RouteReply<'explainService'>> {
  const { store, clock } = context;
  const { name, key } = service;
  const task = (await store.services.version(name, service.version))?.task;
  const replicas = await store.replicas.list(name);
  const events = (await store.events.list({ subject: name, subjectKey: key })).filter(isStepOfSearch);
  const found = Map.groupBy(events, ({ replicaId }) => replicaId ?? 0);
  const occupied = locationsOf(replicas);
  // From zero, a replica is launched only for requests that wait.
  const readySeconds = task && wakeOrder(task, { queued: 1, replicas });
  const { placement } = service.memory;
  const memory = task && placement && memoryFor(placement, searchOf(task));
  const histories = task !== undefined && spotPlacerOf(task) === 'hedge' ? await store.zones.list() : undefined;
  const plan =
    task === undefined
      ? null
      : await planPlacement({
          alternatives: task.resources,
          nodes: task.numNodes,
          providerConfig: task.providerConfig,
          placer: spotPlacerOf(task),
          zoneOrder: zoneOrderOf(
            task,
            () => placement,
            () => histories ?? {},
            () => clock.now(),
          ),
          readySeconds,
          replicas: 1,
          providers: await context.states(),
          memory,
          occupied,
          clock,
          explain: all,
        });
  const zoneNotes = (histories === undefined ? [] : (memory?.spotZones ?? [])).map(({ zone }) => {
    return `Zone ${zone.split('|').join('/')}: ${describeZone(histories?.[zone], clock.now())}.`;
  });
  const wakeNotes = readySeconds === undefined ? [] : [fastestNote];
  return {
    service: name,
    replicas: replicas
      .filter((replica) => id === undefined || replica.id === id)
      .map((replica) => ({
        id: replica.id,
        status: replica.state,
        reason: replica.reason,
        reachedBy: replica.address === null ? null : describeAddress(replica.address),
        steps: (found.get(replica.id) ?? []).map(eventView),
      })),
    plan: plan && { ...plan, notes: [...plan.notes, ...wakeNotes, ...zoneNotes] },
  };
}

const isStepOfSearch = ({ replicaId, cause }: EventRecord): boolean => replicaId !== null && searchCauses.has(cause);
