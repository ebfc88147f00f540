import { isEnded, nextReplicaState, type ReplicaEvent, type ReplicaState } from '../../domain/replica-state.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ReplicaRecord } from '../../store/records.ts';
import type { Change } from '../../store/store.ts';
import type { ServiceContext } from './service-context.ts';

/** Why something happened, for the history: a short stable word and a sentence without secrets. */
export interface Explanation {
  readonly cause: string;
  readonly message: string;
}

/** One replica's record and the only way to change it: read, decide, write if nobody else wrote, else again. */
export class ReplicaHandle {
  readonly #context: ServiceContext;
  #record: ReplicaRecord;

  constructor(context: ServiceContext, record: ReplicaRecord) {
    this.#context = context;
    this.#record = record;
  }

  get record(): ReplicaRecord {
    return this.#record;
  }

  get id(): number {
    return this.#record.id;
  }

  get state(): ReplicaState {
    return this.#record.state;
  }

  /** Takes over a record that was read elsewhere, when it is newer. */
  refresh(record: ReplicaRecord): void {
    if (record.revision > this.#record.revision) this.#record = record;
  }

  /** Lets an event happen. Returns false, and changes nothing, when it is stale for the replica's state. */
  async happen(event: ReplicaEvent, explanation: Explanation, change: Change<ReplicaRecord> = {}): Promise<boolean> {
    return this.#write((record) => {
      const to = nextReplicaState(record.state, event);
      if (to === record.state) return undefined;
      const now = this.#context.clock.now();
      return { ...change, ...timesOf(record, to, now), state: to };
    }, explanation);
  }

  /** Writes facts that change no state; an explanation makes a line in the history. */
  async note(change: Change<ReplicaRecord>, explanation?: Explanation): Promise<void> {
    await this.#write(() => change, explanation);
  }

  async #write(decide: (record: ReplicaRecord) => Change<ReplicaRecord> | undefined, explanation?: Explanation): Promise<boolean> {
    const { store, clock, name, key } = this.#context;
    for (;;) {
      const before = this.#record;
      const change = decide(before);
      if (change === undefined) return false;
      const event =
        explanation === undefined
          ? undefined
          : {
              at: clock.now(),
              subject: name,
              subjectKey: key,
              replicaId: before.id,
              from: before.state,
              to: change.state ?? before.state,
              ...explanation,
            };
      const written = await store.replicas.update(before, change, event);
      if (written !== undefined) {
        this.#record = written;
        if (change.state !== undefined) this.#context.wake();
        return true;
      }
      // The key tells it from a replica of a later service of that name.
      const fresh = (await store.replicas.list(name)).find((one) => one.id === before.id && one.key === before.key);
      if (fresh === undefined) throw new SvcError('SVC_REPLICA_NOT_FOUND', `The record of replica ${before.id} of '${name}' is gone.`);
      this.#record = fresh;
    }
  }
}

/** The times that follow from entering a state. */
function timesOf(record: ReplicaRecord, to: ReplicaState, now: number): Change<ReplicaRecord> {
  return {
    ...(to === 'PROVISIONING' ? { launchedAt: now } : {}),
    ...(to === 'READY' ? { firstReadyAt: record.firstReadyAt ?? now, readySince: now, firstProbeFailureAt: null } : {}),
    ...(to === 'NOT_READY' ? { readySince: null } : {}),
    ...(to === 'SHUTTING_DOWN' ? { endRequestedAt: record.endRequestedAt ?? now } : {}),
    ...(isEnded(to) ? { endedAt: now, address: null, machineId: null } : {}),
  };
}
