import { kindOf, type OccupiedPlace, type PlaceableOffer, type PlacementMemory } from '../domain/placement.ts';
import type { PendingAsk } from '../domain/placement/next-move.ts';
import { covers, forgetRefusals, rememberRefusal, type Refused } from '../domain/placement/refusals.ts';
import { rememberStart } from '../domain/placement/start-times.ts';
import type { Random } from '../shared/random.ts';

/** What a history needs from outside. */
export interface PlacementHistoryOptions {
  /** What a process before this one learned. */
  readonly memory?: PlacementMemory | undefined;
  /** Keeps what was learned; called after each change. Not waited for: it only saves asking again. */
  readonly save?: (memory: PlacementMemory) => void;
  readonly random?: Random;
}

/** An ask that is under way; `end` forgets it. */
export interface OpenAsk {
  readonly ask: PendingAsk;
  end(): void;
}

/** How long a kind that gave a machine counts as one that gives, ms. */
const givenLatelyMs = 300_000;

/**
 * What the launches of a service have learned of the places and are finding out at this moment, so that they search together: none asks a place
 * that refused another, and all know what is being asked.
 */
export class PlacementHistory {
  #memory: PlacementMemory;
  readonly #save: (memory: PlacementMemory) => void;
  readonly #random: Random;
  readonly #open = new Map<PendingAsk, PlaceableOffer>();
  readonly #given = new Map<string, { offer: PlaceableOffer; machines: number; at: number }>();
  readonly #waiting = new Set<() => void>();
  readonly #work = new Set<Promise<unknown>>();

  constructor({ memory, save = () => undefined, random = () => 0.5 }: PlacementHistoryOptions = {}) {
    this.#memory = { refusals: memory?.refusals ?? [], starts: memory?.starts ?? [] };
    this.#save = save;
    this.#random = random;
  }

  get memory(): PlacementMemory {
    return this.#memory;
  }

  /** Asks that no answer has come to, of all launches. */
  get pending(): readonly PendingAsk[] {
    return [...this.#open.keys()];
  }

  /** Where machines are being asked for: launches at the same moment must see each other to spread. */
  get asked(): readonly OccupiedPlace[] {
    return [...this.#open.values()];
  }

  /** Whether a place may still give a machine that nobody wants, or one is being given back. */
  get isBusy(): boolean {
    return this.#open.size > 0 || this.#work.size > 0;
  }

  /** Work that goes on behind a search. What fails of it is made up for by the sweep for machines that no record knows. */
  keepBusy(work: Promise<void>): void {
    const settled = work.catch(() => undefined).finally(() => this.#work.delete(settled));
    this.#work.add(settled);
  }

  /** Machines that each kind gave since it last refused, of those that gave one lately. `now` is monotonic ms. */
  given(now: number): ReadonlyMap<string, number> {
    return new Map([...this.#given].filter(([, { at }]) => now - at < givenLatelyMs).map(([kind, { machines }]) => [kind, machines]));
  }

  /** A launch is about to ask. `now` is monotonic ms. */
  asking(launch: string, offer: PlaceableOffer, now: number): OpenAsk {
    const ask = { launch, kind: kindOf(offer), at: now };
    this.#open.set(ask, offer);
    return {
      ask,
      end: () => {
        if (this.#open.delete(ask)) this.#tell();
      },
    };
  }

  /** A place refused at `now`, ms since the epoch. */
  refused(offer: PlaceableOffer, refused: Refused, now: number): void {
    if (refused.kind !== 'throttled') {
      for (const [kind, given] of this.#given) if (covers({ offer, ...refused }, given.offer)) this.#given.delete(kind);
    }
    this.#learn({ ...this.#memory, refusals: rememberRefusal(this.#memory.refusals, offer, refused, now, this.#random()) });
  }

  /** A place gave a machine at `now`, monotonic ms. */
  gave(offer: PlaceableOffer, now: number): void {
    const kind = kindOf(offer);
    this.#given.set(kind, { offer, machines: (this.#given.get(kind)?.machines ?? 0) + 1, at: now });
    this.#learn({ ...this.#memory, refusals: forgetRefusals(this.#memory.refusals, offer) });
  }

  /** A machine runs, so many ms after it was asked for. */
  started(offer: PlaceableOffer, tookMs: number): void {
    this.#learn({ ...this.#memory, starts: rememberStart(this.#memory.starts, offer, tookMs) });
  }

  /** Settles when something was learned or an ask has ended, or when the signal aborts. */
  change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted) done();
    });
  }

  #learn(memory: PlacementMemory): void {
    if (memory.refusals !== this.#memory.refusals || memory.starts !== this.#memory.starts) {
      this.#memory = memory;
      this.#save(memory);
    }
    this.#tell();
  }

  #tell(): void {
    for (const wake of this.#waiting) wake();
  }
}
