import type { BalancerReplica } from '../domain/balancer-link.ts';
import { PassiveHealth } from './passive-health.ts';
import type { Candidate } from './policy/policy.ts';
import { ReplicaPool, type PoolServices } from './replica-pool.ts';

/** One replica, from its first mention to the end of its last request. */
export class Replica implements Candidate {
  readonly id: number;
  readonly health = new PassiveHealth();
  readonly pool: ReplicaPool;
  #told: BalancerReplica;
  #inFlight = 0;
  #lastChoice = 0;

  constructor(told: BalancerReplica, services: PoolServices) {
    this.id = told.id;
    this.#told = told;
    this.pool = new ReplicaPool(told.address, services);
    if (told.state === 'draining') this.pool.close();
  }

  /** As the reconciler told. */
  get told(): BalancerReplica {
    return this.#told;
  }

  get weight(): number {
    return this.#told.weight;
  }

  get isServing(): boolean {
    return this.#told.state === 'serving';
  }

  /** Attempts under way, from the choice of this replica to the end of its response. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get lastChoice(): number {
    return this.#lastChoice;
  }

  /** It was chosen for an attempt, by the choice of that number. */
  noteChoice(choice: number): void {
    this.#lastChoice = choice;
  }

  /** News of the same replica at the same address. */
  update(told: BalancerReplica): void {
    this.#told = told;
    if (told.state === 'draining') this.pool.close();
    else this.pool.reopen();
  }

  /** It is no longer part of the service; requests under way go on. */
  retire(): void {
    this.#told = { ...this.#told, state: 'draining' };
    this.pool.close();
  }

  /** Each call is matched by exactly one of `endAttempt`. */
  beginAttempt(): void {
    this.#inFlight += 1;
  }

  endAttempt(): void {
    this.#inFlight -= 1;
  }
}
