import type { Candidate, PlaceableOffer } from '../placement.ts';

/** What sums of fractions get wrong: three thirds are a whole. */
const tolerance = 1e-9;

/**
 * What a plan leaves of the room that places say they have. Machines of several sizes on the same nodes share it: who takes one of three that fit takes a
 * third, also of what others fit in. Where nothing is said there is no end of it.
 */
export class RoomLeft {
  readonly #taken = new Map<string, number>();

  /** Whether one more of them fits. */
  has({ offer }: Candidate): boolean {
    return offer.room === undefined || this.#takenOf(offer) + 1 / offer.room <= 1 + tolerance;
  }

  /** Counts one of them as taken. */
  take({ offer }: Candidate): void {
    if (offer.room !== undefined) this.#taken.set(nodesOf(offer), this.#takenOf(offer) + 1 / offer.room);
  }

  #takenOf(offer: PlaceableOffer): number {
    return this.#taken.get(nodesOf(offer)) ?? 0;
  }
}

/** Other accelerators are on other nodes, and so are spot machines. */
function nodesOf({ provider, region, zone = '', accelerator, spot }: PlaceableOffer): string {
  return [provider, region, zone, accelerator?.name ?? '', spot ? 'spot' : ''].join('|');
}
