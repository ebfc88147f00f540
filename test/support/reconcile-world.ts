import type { Decision, World } from '../../src/domain/decision.ts';
import { newReplica, type ReplicaRecord } from '../../src/domain/records.ts';
import { noReport, type ReplicaReport } from '../../src/domain/replica/replica-report.ts';
import type { ReplicaPolicy } from '../../src/domain/task.ts';
import { aReplica, aService, aServiceSpec, aTask } from './builders.ts';

/** An address of a replica. */
export const address = { kind: 'tcp', host: '127.0.0.1', port: 1 } as const;
/** The report of a replica whose machine reports. */
export const seen: ReplicaReport = { ...noReport, machine: { type: 'reporting' } };

/** A task whose service has this policy. */
export function aTaskWith(policy: Partial<ReplicaPolicy> = {}) {
  const spec = aServiceSpec();
  return aTask({ service: { ...spec, replicaPolicy: { ...spec.replicaPolicy, ...policy } } });
}

/** A world with an empty service. */
export function aWorld(change: Partial<World> = {}): World {
  return {
    now: 100_000,
    monotonic: 100_000,
    service: aService({ nextReplicaId: 10 }),
    versions: new Map([[1, aTaskWith()]]),
    replicas: [],
    reports: new Map(),
    load: { requestsInWindow: 0, busy: 0, isComplete: true },
    isInventoryKnown: true,
    zoneHistories: {},
    leftovers: 'unknown',
    ...change,
  };
}

/** The world of an update from version 1 to version 2, which has another program. */
export function anUpdate(change: Partial<World> = {}, memory: Partial<World['service']['memory']> = {}): World {
  const service = aService({ nextReplicaId: 10, version: 2, firstReadyAt: 1_000 });
  const update = { from: 1, at: 90_000 };
  return aWorld({
    service: { ...service, memory: { ...service.memory, provenVersion: 1, update, ...memory } },
    versions: new Map([
      [1, aTaskWith()],
      [2, { ...aTaskWith(), run: 'another program' }],
    ]),
    ...change,
  });
}

/** A replica that has been ready for 99 s. */
export const ready = (id: number, change: Partial<ReplicaRecord> = {}): ReplicaRecord =>
  aReplica({ id, state: 'READY', address, firstReadyAt: 1_000, readySince: 1_000, ...change });
/** Reports of replicas by id; of the rest nothing is known. */
export const reported = (entries: Readonly<Record<number, Partial<ReplicaReport>>>): World['reports'] =>
  new Map(Object.entries(entries).map(([id, report]) => [Number(id), { ...seen, ...report }]));
/** The stopped replicas with their causes. */
export const stops = ({ stop }: Decision): readonly string[] => stop.map(({ replica, change }) => `${replica.id} ${change.endCause}`);
/** The endpoint set with the states of its replicas. */
export const set = ({ endpoints }: Decision): readonly string[] => endpoints.map(({ id, state, lost }) => `${id} ${lost ?? state}`);

/** The world after the decision was committed and before any action ran. */
export function committed(world: World, decision: Decision): World {
  const { service } = world;
  const launched = decision.launch.map((one, index) =>
    newReplica(
      { ...service, version: one.version },
      { id: service.nextReplicaId + index, key: `k${index}`, createdAt: world.now, market: one.market },
    ),
  );
  const changed = new Map([...decision.change, ...decision.stop].map(({ replica, change }) => [replica.id, { ...replica, ...change }]));
  return {
    ...world,
    service: { ...service, ...decision.service, nextReplicaId: service.nextReplicaId + launched.length },
    replicas: [...world.replicas.map((one) => changed.get(one.id) ?? one), ...launched],
    load: decision.nextLoadMs === undefined ? world.load : undefined,
  };
}
