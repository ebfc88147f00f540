import { kindOf } from '../domain/placement.ts';
import { fingerprint } from '../shared/hex.ts';

type Kind = Parameters<typeof kindOf>[0];

/** Idempotency key for a kind of machine. It is the same after a crash, so the provider creates no second machine. */
export function askKey(key: string, offer: Kind, round = 0): string {
  const base = `${key}-${fingerprint(kindOf(offer)).slice(0, 8)}`;
  return round === 0 ? base : `${base}-${round}`;
}

/** The keys of one search. A key is not used again after a machine with it was terminated. */
export class AskRounds {
  readonly #rounds = new Map<string, number>();

  /** Whether each kind still has its first key. */
  get areFirst(): boolean {
    return this.#rounds.size === 0;
  }

  keyOf(key: string, offer: Kind): string {
    return askKey(key, offer, this.#rounds.get(kindOf(offer)));
  }

  /** The next ask for this kind gets another key. */
  next(offer: Kind): void {
    this.#rounds.set(kindOf(offer), (this.#rounds.get(kindOf(offer)) ?? 0) + 1);
  }
}
