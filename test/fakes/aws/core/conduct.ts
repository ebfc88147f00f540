import type { Clock } from '../../../../src/shared/clock.ts';
import type { Random } from '../../../../src/shared/random.ts';
import { apiError } from './error-catalogue.ts';

/** The emulated services, as credentials name them. */
export type ServiceName = 'ec2' | 'iam' | 'sts' | 'ssm' | 's3' | 'servicequotas';

/** The facts about a call that are known when faults are looked up. */
export interface Circumstances {
  readonly service: ServiceName;
  readonly action: string;
  readonly region: string;
  /** Scope of the machine; known to RunInstances and StartInstances only, after their parameters were validated. */
  readonly zone?: string;
  readonly instanceType?: string;
  readonly spot?: boolean;
}

/** Selects calls: those that match all given fields. */
export interface When extends Partial<Circumstances> {
  /** In [0, 1]; 1 unless given. */
  readonly probability?: number;
  /** How often it happens in all; unlimited unless given. */
  readonly times?: number;
  /**
   * How often it happens to equal requests in one region: then every retry gets through, however the calls of several
   * clients interleave. Unlimited unless given.
   */
  readonly perRequest?: number;
}

/**
 * Effect of a fault: the call is not executed (`error`, `reset`), is executed late (`delay`), or loses its reply
 * (`lose-reply`).
 */
export type Fault =
  | { readonly kind: 'error'; readonly code: string; readonly message?: string; readonly status?: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'lose-reply' }
  | { readonly kind: 'delay'; readonly ms: number };

interface Rule {
  readonly when: When;
  readonly fault: Fault;
  left: number;
  /** How often it happened to each request. */
  readonly occurrences: Map<string, number>;
}

interface RateLimit {
  readonly when: When;
  readonly perSecond: number;
  readonly burst: number;
  /**
   * Token buckets with the time of the last refill, by region and action: AWS throttles each action in each region
   * separately.
   */
  readonly buckets: Map<string, { tokens: number; at: number }>;
}

const placementKeys = ['zone', 'instanceType', 'spot'] as const;
const callKeys = ['service', 'action', 'region'] as const;

/** Faults and limits of the emulated AWS. A test may change them at any time. */
export class Conduct {
  readonly #rules = new Set<Rule>();
  readonly #limits = new Set<RateLimit>();
  readonly #clock: Clock;
  readonly #random: Random;
  /** Upper limit of items per page of any listing, whatever the request asks for. */
  pageLimit = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Injects a fault into later calls; the returned function ends it. */
  add(when: When, fault: Fault): () => void {
    const rule: Rule = { when, fault, left: when.times ?? Number.POSITIVE_INFINITY, occurrences: new Map() };
    this.#rules.add(rule);
    return () => void this.#rules.delete(rule);
  }

  /** Refuses calls with a code; message and status are those of AWS. */
  refuse(when: When, code: string, message?: string): () => void {
    return this.add(when, message === undefined ? { kind: 'error', code } : { kind: 'error', code, message });
  }

  /** Throttles calls beyond a rate, with a token bucket for each action and region as AWS has it. */
  limitRate(when: When, perSecond: number, burst: number): () => void {
    const limit: RateLimit = { when, perSecond, burst, buckets: new Map() };
    this.#limits.add(limit);
    return () => void this.#limits.delete(limit);
  }

  /** Removes all faults and limits. */
  clear(): void {
    this.#rules.clear();
    this.#limits.clear();
    this.pageLimit = Number.POSITIVE_INFINITY;
  }

  /** Returns the faults of a call with this content. Uses up `times`. */
  faultsOf(call: Circumstances, content: string): readonly Fault[] {
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
      if (isOfPlacement(rule.when) || !this.#isTriggered(rule, call, content)) continue;
      faults.push(rule.fault);
      // Later faults apply to the next call: this one is decided.
      if (rule.fault.kind === 'error' || rule.fault.kind === 'reset') break;
    }
    return faults;
  }

  /**
   * Throws when a fault refuses the placement of a machine. Called once without a zone, for refusals of the whole
   * region, and once for each zone that is tried.
   */
  checkPlacement(call: Circumstances): void {
    for (const rule of this.#rules) {
      const { fault, when } = rule;
      if (fault.kind !== 'error' || !isOfPlacement(when) || (when.zone === undefined) !== (call.zone === undefined)) continue;
      if (this.#isTriggered(rule, call, '')) throw apiError(fault.code, fault.message, fault.status);
    }
  }

  #isTriggered(rule: Rule, call: Circumstances, content: string): boolean {
    if (rule.left <= 0 || !agrees(rule.when, call)) return false;
    const { probability, perRequest = Number.POSITIVE_INFINITY } = rule.when;
    const request = `${nameOf(call)} ${content}`;
    const before = rule.occurrences.get(request) ?? 0;
    const isTriggered = (probability === undefined || this.#random() < probability) && before < perRequest;
    if (!isTriggered) return false;
    rule.occurrences.set(request, before + 1);
    rule.left -= 1;
    return true;
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
