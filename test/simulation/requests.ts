import type { World } from '../support/service-world.ts';
import type { Random } from '../../src/shared/random.ts';

/** The longest request, virtual ms: longer than the grace period of a drain (60 s). */
const longestMs = 90_000;

/** The most requests that one act sends to a replica. */
const mostAtOnce = 5;

/** The requests in flight of a run, by replica. The balancer of its world reports them. */
export class Requests {
  readonly #world: World;
  /** Monotonic ms at which each request of a replica ends. */
  readonly #ends = new Map<number, readonly number[]>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Some requests reach each replica of the endpoint set. */
  arrive(random: Random): void {
    const now = this.#world.clock.monotonic();
    for (const { id, state } of this.#world.endpoints) {
      if (state !== 'serving') continue;
      const more = Array.from({ length: Math.floor(random() * (mostAtOnce + 1)) }, () => now + random() * longestMs);
      this.#ends.set(id, [...(this.#ends.get(id) ?? []), ...more]);
    }
    const inFlight = (): Readonly<Record<string, number>> => this.inFlight;
    this.#world.balancer = {
      get inFlight() {
        return inFlight();
      },
    };
  }

  /** By replica id. */
  get inFlight(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#ends.keys()].map((id) => [String(id), this.of(id)]));
  }

  /** The requests in flight of one replica. */
  of(id: number): number {
    const now = this.#world.clock.monotonic();
    return this.#ends.get(id)?.filter((endsAt) => endsAt > now).length ?? 0;
  }

  /** A lost replica, or a lost balancer, ends its requests. */
  break(id?: number): void {
    if (id === undefined) this.#ends.clear();
    else this.#ends.delete(id);
  }
}
