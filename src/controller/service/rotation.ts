import type { ReplicasCommand, BalancerReplica } from '../../domain/balancer-link.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';

/** Where the sets go: the link to the balancer. */
export interface RotationSink {
  /** Sends the set, now or as soon as the balancer is there; a newer set replaces one not yet sent. */
  send(command: ReplicasCommand): void;
  /** Settles when that revision is in force, or after `timeoutMs` when the balancer does not say so. */
  applied(revision: number, timeoutMs: number): Promise<boolean>;
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
  serve(id: number, address: ReplicaAddress): void {
    const now = this.#replicas.get(id);
    if (now?.state === 'serving' && JSON.stringify(now.address) === JSON.stringify(address)) return;
    this.#replicas.set(id, { id, address, place: 'local', weight: 1, state: 'serving' });
    this.#push();
  }

  /** Leaves a replica what it has and gives it nothing new. */
  drain(id: number, address: ReplicaAddress): void {
    if (this.#replicas.get(id)?.state === 'draining') return;
    this.#replicas.set(id, { id, address, place: 'local', weight: 1, state: 'draining' });
    this.#push();
  }

  /** Forgets a replica; requests that it still has may end. */
  remove(id: number): void {
    if (this.#replicas.delete(id)) this.#push();
  }

  /** Sends the set even when nothing changed: after a start, when the balancer may know an older one. */
  announce(): void {
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
