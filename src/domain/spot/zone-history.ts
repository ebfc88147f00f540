import { delayMs, type Backoff } from '../../shared/backoff.ts';

/**
 * What is known of spot capacity in one zone: plain JSON of constant size. All services of a controller share it. Times
 * are ms since the epoch.
 */
export interface ZoneHistory {
  /** Whether a replica of ours runs there, or the last launch was accepted. */
  readonly isOpen: boolean;
  /** When the zone last opened, closed or took replicas, as far as it was noticed. */
  readonly changedAt: number;
  /** The last sign: a launch, a refusal, a loss, or a running replica. */
  readonly seenAt: number;
  /** Refusals in a row. */
  readonly refusals: number;
  /** The zone should not be asked before. */
  readonly retryAt: number;
  /** Losses, and how many the ages of the zone predicted meanwhile. Both fade. */
  readonly losses: number;
  readonly predicted: number;
}

/** Zone histories by the key of the zone. */
export type ZoneHistories = Readonly<Record<string, ZoneHistory>>;

const hourMs = 3_600_000;

/**
 * Losses per hour, by the time since the zone last changed. Recorded capacity of 30 zones shows 1.0 to 1.7 in the first
 * ten minutes, 0.7 after an hour, 0.3 after two, and 0.02 to 0.16 after half a day.
 */
const freshLossesPerHour = 1.8;
const halvingMs = 0.5 * hourMs;
const leastLossesPerHour = 0.03;

/** Age of a zone without a history. Its state is unknown; states that last long fill most of the time. */
const unknownAgeMs = 12 * hourMs;

/** After this time, evidence about a zone counts half: the load of a zone changes within days. */
const evidenceHalfLifeMs = 48 * hourMs;

/** The common rate counts as much as this many losses of a zone itself. */
const commonLosses = 2;

/** Replicas report more often than this. A longer gap, such as a stopped controller, is no evidence. */
const longestGapMs = 600_000;

/**
 * A closed zone is asked again after this. The longest delay is short: when all zones have closed, the first that opens
 * must be found within two decisions. A refused launch costs nothing.
 */
const refusalBackoff: Backoff = { firstMs: 30_000, longestMs: 60_000 };

/** A zone that gave no sign for this long is forgotten: the next launch shows more than its history. */
const memoryMs = 14 * 24 * hourMs;

/** Limit of remembered zones: more than the zones of the largest clouds. */
const mostZones = 500;

const lossesAtAge = (ageMs: number): number => leastLossesPerHour + freshLossesPerHour / (1 + Math.max(0, ageMs) / halvingMs);

/** Losses to expect between two ages of a zone: the integral of `lossesAtAge`. */
function lossesBetween(fromMs: number, toMs: number): number {
  const [from, to] = [Math.max(0, fromMs), Math.max(0, toMs)];
  const aging = freshLossesPerHour * halvingMs * Math.log((halvingMs + to) / (halvingMs + from));
  return Math.max(0, (leastLossesPerHour * (to - from) + aging) / hourMs);
}

/** Losses per hour to expect where replicas run in the zone. */
export function lossesPerHour(history: ZoneHistory | undefined, now: number): number {
  if (history === undefined) return lossesAtAge(unknownAgeMs);
  const { isOpen, changedAt, seenAt, losses, predicted } = history;
  const openedAt = isOpen ? changedAt : openingOf(seenAt, now);
  // A zone's own losses against the predicted ones, drawn towards 1 while there is little evidence.
  return (lossesAtAge(now - openedAt) * (losses + commonLosses)) / (predicted + commonLosses);
}

/** A closed zone that accepts a launch has opened at an unknown time since its last sign. */
const openingOf = (seenAt: number, now: number): number => (Math.min(seenAt, now) + now) / 2;

/** A zone that is seen for the first time. */
const unknownZone = (now: number): ZoneHistory => ({
  isOpen: true,
  changedAt: now - unknownAgeMs,
  seenAt: now,
  refusals: 0,
  retryAt: now,
  losses: 0,
  predicted: 0,
});

/** The zone accepted a launch. */
export function recordAccepted(history: ZoneHistory | undefined, now: number): ZoneHistory {
  const before = history ?? unknownZone(now);
  const changedAt = before.isOpen ? before.changedAt : openingOf(before.seenAt, now);
  return { ...before, isOpen: true, changedAt, seenAt: now, refusals: 0, retryAt: now };
}

/** The zone refused a launch. If replicas of ours run there, it is full, but has not closed. */
export function recordRefusal(history: ZoneHistory | undefined, now: number, isRunning: boolean): ZoneHistory {
  const before = history ?? unknownZone(now);
  const refusals = before.refusals + 1;
  const closes = before.isOpen && !isRunning;
  return {
    ...before,
    isOpen: isRunning,
    changedAt: closes ? now : before.changedAt,
    seenAt: now,
    refusals,
    retryAt: now + delayMs(refusalBackoff, refusals),
  };
}

/** The zone took replicas of ours. Those that it takes within a minute are one loss. */
export function recordLoss(history: ZoneHistory | undefined, now: number): ZoneHistory {
  const before = recordRunning(history, now);
  const isSame = history?.losses !== undefined && history.losses > 0 && Math.abs(now - history.changedAt) < 60_000;
  return {
    ...before,
    isOpen: false,
    changedAt: now,
    refusals: 0,
    retryAt: now + delayMs(refusalBackoff, 1),
    losses: before.losses + (isSame ? 0 : 1),
  };
}

/** Whether the zone may be asked now. A delay longer than any is from before the clock was set back. */
export function mayAskZone(history: ZoneHistory | undefined, now: number): boolean {
  return history === undefined || history.retryAt <= now || history.retryAt > now + refusalBackoff.longestMs;
}

/** Replicas of ours run in the zone, and have since its last sign. Call it about once a minute. */
export function recordRunning(history: ZoneHistory | undefined, now: number): ZoneHistory {
  const before = history ?? unknownZone(now);
  const { changedAt, seenAt, losses, predicted } = before;
  const kept = 2 ** (-Math.max(0, now - seenAt) / evidenceHalfLifeMs);
  const fromMs = Math.max(seenAt, now - longestGapMs);
  return {
    ...before,
    isOpen: true,
    seenAt: Math.max(seenAt, now),
    losses: losses * kept,
    predicted: predicted * kept + lossesBetween(fromMs - changedAt, now - changedAt),
  };
}

/** The histories that are worth keeping: zones with a sign within two weeks, and no more than 500. */
export function boundHistories(histories: ZoneHistories, now: number): ZoneHistories {
  const kept = Object.entries(histories).filter(([, { seenAt }]) => seenAt > now - memoryMs);
  return Object.fromEntries(kept.toSorted(([, a], [, b]) => b.seenAt - a.seenAt).slice(0, mostZones));
}
