import type { Clock } from '../../../../src/shared/clock.ts';
import type { Random } from '../../../../src/shared/random.ts';
import { apiError } from './error-catalogue.ts';

/** The services that are emulated, as credentials name them. */
export type ServiceName = 'ec2' | 'iam' | 'sts' | 'ssm' | 's3' | 'servicequotas';

/** What a call is about, as far as it is known when faults are looked up. */
export interface Circumstances {
  readonly service: ServiceName;
  readonly action: string;
  readonly region: string;
  /** Where and what a machine is to be; known to RunInstances and StartInstances only, once their parameters were found in order. */
  readonly zone?: string;
  readonly instanceType?: string;
  readonly spot?: boolean;
}

/** Which calls something holds for: those that agree in all that is given. */
export interface When extends Partial<Circumstances> {
  /** In [0, 1]; 1 unless given. */
  readonly probability?: number;
  /** How often it happens before it is over; without end unless given. */
  readonly times?: number;
  /** How often it happens to an action of a region one after the other: whoever asks once more than that gets through. Without end unless given. */
  readonly inARow?: number;
}

/** What happens to a call: nothing is done (`error`, `reset`), or it is done late (`delay`) or without a reply (`lose-reply`). */
export type Fault =
  | { readonly kind: 'error'; readonly code: string; readonly message?: string; readonly status?: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'lose-reply' }
  | { readonly kind: 'delay'; readonly ms: number };

interface Rule {
  readonly when: When;
  readonly fault: Fault;
  left: number;
  /** How often it happened without a break, by region and action. */
  readonly streaks: Map<string, number>;
}

interface RateLimit {
  readonly when: When;
  readonly perSecond: number;
  readonly burst: number;
  /** Tokens and when they were counted, by region and action: AWS throttles each action in each region by itself. */
  readonly buckets: Map<string, { tokens: number; at: number }>;
}

const placementKeys = ['zone', 'instanceType', 'spot'] as const;
const callKeys = ['service', 'action', 'region'] as const;

/** How the emulated AWS behaves beyond doing what it is asked. Can be changed at any time. */
export class Conduct {
  readonly #rules = new Set<Rule>();
  readonly #limits = new Set<RateLimit>();
  readonly #clock: Clock;
  readonly #random: Random;
  /** The most items that any page of a listing has, whatever was asked for. */
  pageLimit = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Lets calls fail or go wrong from now on; the function that is returned ends it. */
  add(when: When, fault: Fault): () => void {
    const rule: Rule = { when, fault, left: when.times ?? Number.POSITIVE_INFINITY, streaks: new Map() };
    this.#rules.add(rule);
    return () => void this.#rules.delete(rule);
  }

  /** Refuses calls with a code; words and status are those of AWS. */
  refuse(when: When, code: string, message?: string): () => void {
    return this.add(when, message === undefined ? { kind: 'error', code } : { kind: 'error', code, message });
  }

  /** Throttles calls beyond a rate, by a bucket of tokens for each action and region as AWS has it. */
  limitRate(when: When, perSecond: number, burst: number): () => void {
    const limit: RateLimit = { when, perSecond, burst, buckets: new Map() };
    this.#limits.add(limit);
    return () => void this.#limits.delete(limit);
  }

  /** Back to doing what is asked. */
  clear(): void {
    this.#rules.clear();
    this.#limits.clear();
    this.pageLimit = Number.POSITIVE_INFINITY;
  }

  /** What happens to a call as such. Uses up `times`. */
  faultsOf(call: Circumstances): readonly Fault[] {
    const code =
      call.service === 'ec2'
        ? 'RequestLimitExceeded'
        : call.service === 's3'
          ? 'SlowDown'
          : call.service === 'ssm'
            ? 'ThrottlingException'
            : 'Throttling';
    const throttled = [...this.#limits].some((limit) => this.#exceeds(limit, call));
    if (throttled) return [{ kind: 'error', code }];
    const faults: Fault[] = [];
    for (const rule of this.#rules) {
      if (isOfPlacement(rule.when) || !this.#happens(rule, call)) continue;
      faults.push(rule.fault);
      // Later ones wait for the next call: this one is over.
      if (rule.fault.kind === 'error' || rule.fault.kind === 'reset') break;
    }
    return faults;
  }

  /**
   * Throws when a machine is refused where it is about to be placed. Asked once without a zone, for refusals that hold wherever it would be, and once
   * for each zone that is tried.
   */
  checkPlacement(call: Circumstances): void {
    for (const rule of this.#rules) {
      const { fault, when } = rule;
      if (fault.kind !== 'error' || !isOfPlacement(when) || (when.zone === undefined) !== (call.zone === undefined)) continue;
      if (this.#happens(rule, call)) throw apiError(fault.code, fault.message, fault.status);
    }
  }

  #happens(rule: Rule, call: Circumstances): boolean {
    if (rule.left <= 0 || !agrees(rule.when, call)) return false;
    const { probability, inARow = Number.POSITIVE_INFINITY } = rule.when;
    const name = nameOf(call);
    const streak = rule.streaks.get(name) ?? 0;
    const happens = (probability === undefined || this.#random() < probability) && streak < inARow;
    rule.streaks.set(name, happens ? streak + 1 : 0);
    if (happens) rule.left -= 1;
    return happens;
  }

  #exceeds(limit: RateLimit, call: Circumstances): boolean {
    if (!agrees(limit.when, call)) return false;
    const name = nameOf(call);
    const now = this.#clock.monotonic();
    const bucket = limit.buckets.get(name) ?? { tokens: limit.burst, at: now };
    bucket.tokens = Math.min(limit.burst, bucket.tokens + ((now - bucket.at) / 1_000) * limit.perSecond);
    bucket.at = now;
    limit.buckets.set(name, bucket);
    if (bucket.tokens < 1) return true;
    bucket.tokens -= 1;
    return false;
  }
}

function nameOf({ service, action, region }: Circumstances): string {
  return `${service} ${action} ${region}`;
}

function isOfPlacement(when: When): boolean {
  return placementKeys.some((key) => when[key] !== undefined);
}

function agrees(when: When, call: Circumstances): boolean {
  return [...callKeys, ...placementKeys].every((key) => when[key] === undefined || when[key] === call[key]);
}
