import type { Change, NewEvent, ReplicaRecord } from '../../domain/records.ts';
import type { ReplicaEvent, ReplicaState } from '../../domain/replica/replica-state.ts';
import { replicaEvent, transition, type Explanation, type ReplicaChange } from '../../domain/transition.ts';
import { SvcError } from '../../shared/errors.ts';
import { compareAndSwap } from '../../store/compare-and-swap.ts';
import type { ServiceContext } from './service-context.ts';

type ReplicaPatch = Pick<ReplicaChange, 'change'> & { readonly event: NewEvent | undefined };

/** The fields of a record that the endpoint set depends on. */
const endpointFields = ['state', 'address', 'offer', 'firstReadyAt', 'endCause'] as const satisfies readonly (keyof ReplicaRecord)[];

/** One replica's record as its executor knows it. */
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

  /** Takes over a record from another read if it is newer. Returns whether the endpoint set depends on the change. */
  refresh(record: ReplicaRecord): boolean {
    return record.revision > this.#record.revision && this.#replace(record);
  }

  /**
   * Takes over a record that replaces an outdated one. Its revision may be lower after a database restore. Returns
   * whether the endpoint set depends on the change.
   */
  reset(record: ReplicaRecord): boolean {
    return record.key === this.#record.key && this.#replace(record);
  }

  #replace(record: ReplicaRecord): boolean {
    const before = this.#record;
    this.#record = record;
    return endpointFields.some((field) => before[field] !== record[field]);
  }

  /** Applies an event. Returns false, and changes nothing, when it is stale for the replica's state. */
  async transition(event: ReplicaEvent, explanation: Explanation, patch: Change<ReplicaRecord> = {}): Promise<boolean> {
    const { clock, key } = this.#context;
    const written = await this.#write((record) => transition(record, event, { explanation, patch, now: clock.now(), serviceKey: key }));
    if (written) this.#context.wake();
    return written;
  }

  /** Writes facts that change no state. An explanation adds an event to the history. */
  async patch(change: Change<ReplicaRecord>, explanation?: Explanation): Promise<void> {
    const { clock, key } = this.#context;
    await this.#write((record) => ({
      change,
      event: explanation && replicaEvent(record, { to: record.state, explanation, now: clock.now(), serviceKey: key }),
    }));
  }

  async #write(decide: (record: ReplicaRecord) => ReplicaPatch | undefined): Promise<boolean> {
    const { store, name, endpoint } = this.#context;
    let isOvertaken = false;
    let isSetOutdated = false;
    const read = async (): Promise<ReplicaRecord> => {
      if (isOvertaken) {
        // The key distinguishes it from a replica of a later service with the same name.
        const fresh = (await store.replicas.list(name)).find((one) => one.id === this.id && one.key === this.#record.key);
        if (fresh === undefined) throw new SvcError('SVC_REPLICA_NOT_FOUND', `The record of replica ${this.id} of '${name}' is gone.`);
        isSetOutdated = this.#replace(fresh) || isSetOutdated;
      }
      isOvertaken = true;
      return this.#record;
    };
    try {
      const written = await compareAndSwap(read, (record) => {
        const decided = decide(record);
        return decided && store.replicas.update(record, decided.change, decided.event);
      });
      if (written !== undefined) isSetOutdated = this.refresh(written) || isSetOutdated;
      return written !== undefined;
    } finally {
      if (isSetOutdated) endpoint.refresh();
    }
  }
}
