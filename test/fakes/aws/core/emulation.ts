import type { CancelTimer, Clock } from '../../../../src/shared/clock.ts';
import type { Random } from '../../../../src/shared/random.ts';
import type { Conduct } from './conduct.ts';
import type { KeyRing } from '../sigv4/key-ring.ts';

/** State that all emulated services share. */
export interface Emulation {
  readonly clock: Clock;
  readonly random: Random;
  readonly conduct: Conduct;
  readonly keys: KeyRing;
  /** Twelve digits. */
  readonly account: string;
  readonly timing: Timing;
  readonly timers: Timers;
  /**
   * Records a call that the emulator cannot answer faithfully. The emulator then fails to close, and so the test fails.
   */
  readonly problem: (text: string) => void;
}

/** Minimum and maximum, ms; each time is picked between them. */
export type Range = readonly [from: number, to: number];

/** Durations of AWS's operations. */
export interface Timing {
  /** From RunInstances or StartInstances until `running`. */
  readonly pendingMs: Range;
  readonly stoppingMs: Range;
  readonly shuttingDownMs: Range;
  /** How long terminated instances are still listed; AWS: about an hour. */
  readonly terminatedShownMs: number;
  /** How long reads do not see a new resource, by its kind: AWS is eventually consistent. */
  readonly invisibleMs: Readonly<Record<'instance' | 'group' | 'key' | 'tag' | 'iam', Range>>;
  /** From an interruption notice until the machine is reclaimed; AWS: two minutes. */
  readonly noticeMs: number;
}

/** No delays, for tests that do not depend on them. */
export const quickTiming: Timing = {
  pendingMs: [0, 20],
  stoppingMs: [0, 20],
  shuttingDownMs: [0, 20],
  terminatedShownMs: 3_600_000,
  invisibleMs: { instance: [0, 0], group: [0, 0], key: [0, 0], tag: [0, 0], iam: [0, 0] },
  noticeMs: 120_000,
};

/** A whole number of ms within a range. */
export function pick(range: Range, random: Random): number {
  return Math.floor(range[0] + random() * (range[1] - range[0]));
}

/** An id in AWS's format, from the seed: `i-0123456789abcdef0`. */
export function newId(prefix: string, random: Random, digits = 17): string {
  let text = '';
  while (text.length < digits) text += Math.floor(random() * 16).toString(16);
  return `${prefix}-${text}`;
}

/** Scheduled effects; all of them are cancelled when the emulator closes. */
export class Timers {
  readonly #waiting = new Set<CancelTimer>();
  readonly #clock: Clock;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  after(ms: number, fire: () => void): CancelTimer {
    if (this.#closed) return () => undefined;
    const cancel = this.#clock.after(ms, () => {
      this.#waiting.delete(cancel);
      fire();
    });
    this.#waiting.add(cancel);
    return () => {
      this.#waiting.delete(cancel);
      cancel();
    };
  }

  close(): void {
    this.#closed = true;
    for (const cancel of this.#waiting) cancel();
    this.#waiting.clear();
  }
}
