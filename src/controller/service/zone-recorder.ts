import type { PlaceableOffer } from '../../domain/placement.ts';
import { spotZoneOf } from '../../domain/spot/placer.ts';
import {
  recordAccepted,
  recordLoss,
  recordRefusal,
  recordRunning,
  type ZoneHistories,
  type ZoneHistory,
} from '../../domain/spot/zone-history.ts';
import type { Clock } from '../../shared/clock.ts';
import type { ZoneRepository } from '../../store/store.ts';

type SpotOffer = Pick<PlaceableOffer, 'provider' | 'region' | 'spot'> & { readonly zone?: string | null | undefined };

/** How often a zone is recorded as one with running replicas, ms. */
const runningEveryMs = 60_000;

/**
 * Records what this service's launches and machines show about spot zones. The histories are those of all services as
 * of this service's last record. Offers that are not spot are ignored.
 */
export class ZoneRecorder {
  readonly #zones: ZoneRepository;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #runningAt = new Map<string, number>();
  #histories: ZoneHistories = {};
  #last: Promise<void> = Promise.resolve();

  constructor(zones: ZoneRepository, clock: Clock, onError: (error: unknown) => void) {
    this.#zones = zones;
    this.#clock = clock;
    this.#onError = onError;
  }

  get histories(): ZoneHistories {
    return this.#histories;
  }

  async load(): Promise<void> {
    this.#histories = await this.#zones.list();
  }

  accepted(offer: SpotOffer): void {
    this.#record(offer, recordAccepted);
  }

  /** `isRunning`: replicas of ours run in the zone. */
  refused(offer: SpotOffer, isRunning: boolean): void {
    this.#record(offer, (history, now) => recordRefusal(history, now, isRunning));
  }

  lost(offer: SpotOffer): void {
    this.#record(offer, recordLoss);
  }

  /** Replicas run in the zone. May be called at each poll. */
  running(offer: SpotOffer): void {
    if (!offer.spot) return;
    const zone = spotZoneOf(offer);
    const at = this.#clock.monotonic();
    if (at - (this.#runningAt.get(zone) ?? Number.NEGATIVE_INFINITY) < runningEveryMs) return;
    this.#runningAt.set(zone, at);
    this.#record(offer, recordRunning);
  }

  /** Writes one change after the other. A failed write loses one sign of a zone, no more. */
  #record(offer: SpotOffer, change: (history: ZoneHistory | undefined, now: number) => ZoneHistory): void {
    if (!offer.spot) return;
    const [zone, now] = [spotZoneOf(offer), this.#clock.now()];
    const decide = (all: ZoneHistories): ZoneHistories => ({ ...all, [zone]: change(all[zone], now) });
    // Decisions see the change at once.
    this.#histories = decide(this.#histories);
    const write = async (): Promise<void> => {
      this.#histories = await this.#zones.change(decide, now);
    };
    this.#last = this.#last.then(write).catch(this.#onError);
  }
}
