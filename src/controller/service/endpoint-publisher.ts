import type { BalancerReplica, ReplicasCommand } from '../../domain/balancer-link.ts';
import type { ExpectedReplica } from '../../domain/expected-replica.ts';
import { endpointSet, servingCapacity, trafficSplit, type EndpointCandidate } from '../../domain/endpoint-set.ts';
import type { ServiceRecord } from '../../domain/records.ts';

/** Receives endpoint sets: the connection to the balancer. */
export interface EndpointSink {
  /** Sends the set now, or once the balancer is connected. A newer set replaces one that is not sent yet. */
  send(command: ReplicasCommand): void;
  /** Settles when the balancer has applied that revision, or after `timeoutMs`. */
  applied(revision: number, timeoutMs: number): Promise<boolean>;
}

/** What the endpoint set is computed from. */
export interface EndpointInput {
  readonly candidates: readonly EndpointCandidate[];
  /** As it was last read or written; undefined: it was not read yet, or is gone. */
  readonly service: ServiceRecord | undefined;
  readonly expected: ExpectedReplica | undefined;
}

/** Sends the balancer the endpoint set computed from records and reports, as a whole, whenever it changes. */
export class EndpointPublisher {
  readonly #sink: EndpointSink;
  readonly #epoch: string;
  readonly #input: () => EndpointInput;
  #revision = 0;
  #sent: string | undefined;

  /** `epoch` changes with each start of a reconciler. `input` returns the current replicas. */
  constructor(sink: EndpointSink, epoch: string, input: () => EndpointInput) {
    this.#sink = sink;
    this.#epoch = epoch;
    this.#input = input;
  }

  /** Call after a report or a change of a record. Requests must not wait for the next pass or the disk. */
  refresh(): void {
    const { candidates, service, expected } = this.#input();
    this.publish(endpointSet(candidates, service && trafficSplit(service)), expected);
  }

  /** The first set is sent even when it is empty: after a start the balancer may know another one, or none. */
  publish(replicas: readonly BalancerReplica[], expected: ExpectedReplica | undefined): void {
    const text = JSON.stringify({ replicas, expected });
    if (text === this.#sent) return;
    this.#sent = text;
    this.#revision += 1;
    this.#sink.send({ type: 'replicas', epoch: this.#epoch, revision: this.#revision, replicas, ...(expected && { expected }) });
  }

  /** Whether the balancer has applied the newest set. */
  settled(timeoutMs: number): Promise<boolean> {
    return this.#sink.applied(this.#revision, timeoutMs);
  }

  /** See `servingCapacity`. */
  capacityWith(id: number): { readonly serving: number; readonly all: number } {
    return servingCapacity(id, this.#input().candidates);
  }
}
