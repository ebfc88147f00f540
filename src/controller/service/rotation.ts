import { placeName } from '../../domain/place-name.ts';
import type { ReplicasCommand, BalancerReplica } from '../../domain/balancer-link.ts';
import type { ServiceSpec } from '../../domain/task.ts';

import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { ReplicaRecord } from '../../store/records.ts';
import { replicaWeight } from './replica-capacity.ts';

/** Where the sets go: the link to the balancer. */
export interface RotationSink {
  /** Sends the set, now or as soon as the balancer is there; a newer set replaces one not yet sent. */
  send(command: ReplicasCommand): void;
  /** Settles when that revision is in force, or after `timeoutMs` when the balancer does not say so. */
  applied(revision: number, timeoutMs: number): Promise<boolean>;
}

/** A replica as the balancer is to know it. */
export type RotationMember = Omit<BalancerReplica, 'state'>;

/** A replica that has an address, as the balancer is to know it; `spec` is of its version. */
export function rotationMember({ id, place }: ReplicaRecord, address: ReplicaAddress, spec: ServiceSpec): RotationMember {
  return { id, address, place: place === null ? 'unknown' : placeName(place), weight: replicaWeight(spec, place) };
}

/** Which replicas get requests: the one place that says so. Each change is pushed to the balancer at once, as a whole set. */
export class Rotation {
  readonly #replicas = new Map<number, BalancerReplica>();
  readonly #sink: RotationSink;
  readonly #epoch: string;
  #revision = 0;

  constructor(sink: RotationSink, epoch: string) {
    this.#sink = sink;
    this.#epoch = epoch;
  }

  /** What is in force or about to be. */
  get replicas(): readonly BalancerReplica[] {
    return [...this.#replicas.values()];
  }

  /** Gives a replica new requests. */
  serve(member: RotationMember): void {
    const replica = { ...member, state: 'serving' } as const;
    if (JSON.stringify(this.#replicas.get(member.id)) === JSON.stringify(replica)) return;
    this.#replicas.set(member.id, replica);
    this.#push();
  }

  /** Leaves a replica what it has and gives it nothing new. */
  drain(member: RotationMember): void {
    if (this.#replicas.get(member.id)?.state === 'draining') return;
    this.#replicas.set(member.id, { ...member, state: 'draining' });
    this.#push();
  }

  /** Forgets a replica; requests that it still has may end. */
  remove(id: number): void {
    if (this.#replicas.delete(id)) this.#push();
  }

  /** Gives these new requests, in one set that is sent even when it is empty: after a start the balancer may know another one, or none. */
  begin(members: readonly RotationMember[]): void {
    for (const member of members) this.#replicas.set(member.id, { ...member, state: 'serving' });
    this.#push();
  }

  /** Whether everything decided so far is in force at the balancer. */
  settled(timeoutMs: number): Promise<boolean> {
    return this.#sink.applied(this.#revision, timeoutMs);
  }

  #push(): void {
    this.#revision += 1;
    this.#sink.send({ type: 'replicas', epoch: this.#epoch, revision: this.#revision, replicas: this.replicas });
  }
}
