import { canaryPersistence, judgeCanary, memoryOf, summaryOf, type CanaryMemory } from '../../domain/canary.ts';
import type { World } from '../../domain/decision.ts';
import { trafficSplit } from '../../domain/endpoint-set.ts';
import { addOutcomes, outcomesSince, type Outcomes, type ReplicaOutcomes } from '../../domain/outcomes.ts';
import type { ReplicaRecord, ServiceRecord } from '../../domain/records.ts';
import type { Clock } from '../../shared/clock.ts';

/** Length of a window of the comparison, ms. */
const windowMs = 1_000;

/**
 * Compares the versions of a canary by what the balancer reports. The evidence is stored with the update: after a
 * restart the comparison goes on, without the windows since the last storing.
 */
export class CanaryWatch {
  readonly #clock: Clock;
  /** The version and the start of the update that is watched, and the counts when that began. */
  #update = '';
  #base: Outcomes = {};
  #memory: CanaryMemory | undefined;
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What the comparison says now. Without a canary, and while a window lasts, nothing. The evidence is due once per stretch. */
  compare(
    { version, memory }: ServiceRecord,
    replicas: readonly ReplicaRecord[],
    outcomes: Outcomes,
  ): Pick<World, 'canaryFault' | 'canaryEvidence'> {
    const { update, gaveUp } = memory;
    if (update?.mode !== 'canary' || gaveUp) return {};
    const watched = `${version} ${update.at}`;
    if (watched !== this.#update) {
      this.#update = watched;
      this.#base = outcomes;
      this.#memory = update.evidence && memoryOf(update.evidence);
    }
    const now = this.#clock.monotonic();
    if (now < this.#nextAt) return {};
    // Passes come about once a second: windows that began at the last pass would last up to two.
    this.#nextAt = Math.max(this.#nextAt + windowMs, now);
    const since = outcomesSince(this.#base, outcomes);
    // A version between both, of an update that did not end, is no measure.
    const old = trafficSplit({ version, memory })?.rest ?? update.from;
    const sideOf = (side: number) => {
      const own = new Set(replicas.filter((replica) => replica.version === side).map(({ id }) => String(id)));
      return { version: side, ...sumOf(since, (id) => own.has(id)) };
    };
    const sides = { old: sideOf(old), next: sideOf(version) };
    const judged = judgeCanary(sides, this.#memory);
    this.#memory = judged.memory;
    // Also again, when an earlier summary could not be written.
    const isDue = judged.memory.windows >= (update.evidence?.windows ?? 0) + canaryPersistence.windows;
    return {
      ...(judged.verdict === 'worse' && { canaryFault: judged.reason }),
      ...(isDue && { canaryEvidence: summaryOf(judged.memory) }),
    };
  }
}

function sumOf(outcomes: Outcomes, counts: (id: string) => boolean): ReplicaOutcomes {
  const chosen = Object.entries(outcomes).filter(([id]) => counts(id));
  const { sum = { responses: 0, errors: 0, firstByteCounts: [] } } = chosen.reduce<Outcomes>(
    (all, [, one]) => addOutcomes(all, { sum: one }),
    {},
  );
  return sum;
}
