import type { EventRecord, NewEvent, ReplicaRecord, ServiceRecord, VersionRecord } from '../../src/domain/records.ts';
import { isEnded } from '../../src/domain/replica/replica-state.ts';
import { boundHistories, type ZoneHistories } from '../../src/domain/spot/zone-history.ts';
import type { EventRepository, ReplicaRepository, ServiceRepository, Store, ZoneRepository } from '../../src/store/store.ts';

/** As a database keeps it: a copy of what JSON can hold, which later changes of the original do not touch. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- records are plain data, so the copy has their type
const stored = <Value>(value: Value): Value => jsonCopy(value) as Value;

/** As `JSON.parse(JSON.stringify(value))`, in a third of the time. */
function jsonCopy(value: unknown): unknown {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => jsonCopy(item) ?? null);
  const copy: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) if (field !== undefined) copy[name] = jsonCopy(field);
  return copy;
}

/** Records in memory. Its methods change them at once, so none can be interrupted. */
class Tables {
  readonly services = new Map<string, ServiceRecord>();
  readonly versions = new Map<string, VersionRecord[]>();
  readonly replicas = new Map<string, ReplicaRecord[]>();
  readonly events: EventRecord[] = [];
  zones: ZoneHistories = {};

  addEvent(event: NewEvent): void {
    this.events.push({ ...event, id: this.events.length + 1 });
  }

  addVersion(version: VersionRecord): void {
    this.versions.set(version.service, [...(this.versions.get(version.service) ?? []), stored(version)]);
  }

  listReplicas(service: string): readonly ReplicaRecord[] {
    return this.replicas.get(service) ?? [];
  }

  /** Lists are replaced, never changed: a reader may still have one. */
  addReplica(replica: ReplicaRecord): void {
    this.replicas.set(
      replica.service,
      [...this.listReplicas(replica.service), stored(replica)].toSorted((a, b) => a.id - b.id),
    );
  }

  isCurrent(seen: ServiceRecord): boolean {
    const present = this.services.get(seen.name);
    return present?.key === seen.key && present.revision === seen.revision;
  }

  isCurrentReplica(seen: ReplicaRecord): boolean {
    return this.listReplicas(seen.service).some((one) => one.id === seen.id && one.key === seen.key && one.revision === seen.revision);
  }

  /** Only for current records. */
  changeService(seen: ServiceRecord, change: Partial<ServiceRecord>): ServiceRecord {
    const changed = { ...seen, ...change, revision: seen.revision + 1 };
    this.services.set(seen.name, stored(changed));
    return changed;
  }

  /** Only for current records. */
  changeReplica(seen: ReplicaRecord, change: Partial<ReplicaRecord>): ReplicaRecord {
    const changed = { ...seen, ...change, revision: seen.revision + 1 };
    const kept = stored(changed);
    this.replicas.set(
      seen.service,
      this.listReplicas(seen.service).map((one) => (one.id === seen.id ? kept : one)),
    );
    return changed;
  }
}

function memoryServices(tables: Tables): ServiceRepository {
  return {
    list: async () => [...tables.services.values()],
    async get(name, key) {
      const service = tables.services.get(name);
      return key === undefined || service?.key === key ? service : undefined;
    },
    async add(service, version, event) {
      if (tables.services.has(service.name)) throw new Error(`a service '${service.name}' exists`);
      tables.services.set(service.name, stored(service));
      tables.addVersion(version);
      tables.addEvent(event);
    },
    async update(seen, change, event) {
      if (!tables.isCurrent(seen)) return undefined;
      if (event !== undefined) tables.addEvent(event);
      return tables.changeService(seen, change);
    },
    async commit(seen, { change, events, changed, added }) {
      if (!tables.isCurrent(seen) || changed.some(({ replica }) => !tables.isCurrentReplica(replica))) return undefined;
      const nextReplicaId = Math.max(seen.nextReplicaId, ...added.map(({ replica }) => replica.id + 1));
      const service = tables.changeService(seen, { ...change, nextReplicaId });
      const written = changed.map((one) => tables.changeReplica(one.replica, one.change));
      for (const { replica } of added) tables.addReplica(replica);
      for (const event of [...changed.map((one) => one.event), ...added.map((one) => one.event), ...events]) tables.addEvent(event);
      return { service, replicas: [...written, ...added.map(({ replica }) => replica)] };
    },
    async remove(name, key, event) {
      if (tables.services.get(name)?.key !== key) return;
      for (const table of [tables.services, tables.versions, tables.replicas]) table.delete(name);
      tables.addEvent(event);
    },
    version: async (name, version) => tables.versions.get(name)?.find((one) => one.version === version),
    versions: async (name) => tables.versions.get(name) ?? [],
    async addVersion(seen, change, version, event) {
      if (!tables.isCurrent(seen)) return undefined;
      tables.addVersion(version);
      tables.addEvent(event);
      return tables.changeService(seen, change);
    },
  };
}

function memoryReplicas(tables: Tables): ReplicaRepository {
  return {
    list: async (service) => tables.listReplicas(service),
    async add(seen, replica, event) {
      if (!tables.isCurrent(seen)) return undefined;
      const isUsed = tables.events.some((one) => one.subjectKey === seen.key && one.replicaId === replica.id);
      if (replica.id < seen.nextReplicaId && isUsed) throw new Error(`replica id ${replica.id} has been used`);
      tables.addReplica(replica);
      tables.addEvent(event);
      return tables.changeService(seen, { nextReplicaId: Math.max(seen.nextReplicaId, replica.id + 1) });
    },
    async update(seen, change, event) {
      if (!tables.isCurrentReplica(seen)) return undefined;
      if (event !== undefined) tables.addEvent(event);
      return tables.changeReplica(seen, change);
    },
    async prune(service, keep) {
      const all = tables.listReplicas(service);
      const ended = all.filter(({ state }) => isEnded(state));
      const dropped = new Set(ended.slice(0, Math.max(0, ended.length - keep)));
      tables.replicas.set(
        service,
        all.filter((one) => !dropped.has(one)),
      );
    },
  };
}

function memoryEvents(tables: Tables): EventRepository {
  return {
    append: async (event) => tables.addEvent(event),
    knows: async (key, id) => tables.events.some((one) => one.subjectKey === key && (id === undefined || one.replicaId === id)),
    async list({ subject, subjectKey, after = 0, limit }) {
      const key = subjectKey ?? tables.events.findLast((one) => one.subject === subject)?.subjectKey;
      return tables.events.filter((one) => one.subject === subject && one.subjectKey === key && one.id > after).slice(0, limit);
    },
    pruneGone: unused('pruning of events'),
  };
}

function memoryZones(tables: Tables): ZoneRepository {
  return {
    list: async () => tables.zones,
    async change(decide, now) {
      tables.zones = stored(boundHistories(decide(tables.zones), now));
      return tables.zones;
    },
  };
}

/** A part of the store that a reconciler does not use. */
function unused(name: string): never {
  const refuse = (): never => {
    throw new Error(`the store in memory has no ${name}`);
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every use of it throws
  return new Proxy({}, { get: refuse }) as never;
}

/**
 * An empty store for one reconciler in virtual time, without a database: a simulated run makes hundreds of calls.
 * `memory-store.test.ts` compares it with SQLite.
 */
export function memoryStore(): Store {
  const tables = new Tables();
  return {
    isShared: false,
    services: memoryServices(tables),
    replicas: memoryReplicas(tables),
    events: memoryEvents(tables),
    zones: memoryZones(tables),
    clusters: unused('clusters'),
    files: unused('files'),
    leadership: unused('leadership'),
    file: undefined,
    restoredAt: async () => null,
    raiseTerm: () => Promise.resolve(),
    keepOwnSpace: () => Promise.resolve(),
    copyTo: () => Promise.reject(new Error('a store in memory has no file')),
    close: () => Promise.resolve(),
  };
}
