import type { SshHost } from '../../domain/ssh-pool.ts';
import type { Remote } from '../../remote/remote.ts';
import type { Clock } from '../../shared/clock.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { readDisk, readFacts, type HostFacts } from './host-facts.ts';
import { askHost, type HostQuestion } from './host-link.ts';
import { valueOf, type HostReply } from './host-reply.ts';
import { parseMachineRecord, type MachineRecord } from './machine-record.ts';

/** What a host said last. */
export interface HostState {
  readonly facts: HostFacts;
  /** Of this boot of the host, or of the container that it is: with another one no process of before is left. */
  readonly bootId: string;
  /** How many machines were ever made there: tells whether a decision was made on the latest state. */
  readonly revision: string;
  readonly machines: readonly MachineRecord[];
}

/** Which host, and how it is asked. */
export interface HostSettings {
  readonly pool: string;
  readonly host: SshHost;
  readonly clock: Clock;
  /** To the host itself rather than to one of its machines. */
  readonly remote: Remote;
}

/** Looking takes a round trip or two; opening the connection takes longest. */
const lookTimeoutMs = 12_000;

/** Facts may take as long as a GPU's driver needs to wake up. */
const factsTimeoutMs = 30_000;

/** What a host has changes when somebody opens it, or installs something. */
const factsAgeMs = 300_000;

const firstPauseMs = 2_000;
const longestPauseMs = 60_000;

/**
 * One host. One that cannot be reached is cordoned: it is not asked again before a pause is over, which doubles from 2 s to a minute, and whoever
 * asks meanwhile gets the last error at once.
 */
export class Host {
  readonly pool: string;
  readonly host: SshHost;
  readonly remote: Remote;
  readonly #clock: Clock;
  #facts: { readonly facts: HostFacts; readonly bootId: string; readonly at: number } | undefined;
  #state: HostState | undefined;
  #looking: Promise<HostState> | undefined;
  #away: { readonly since: number; readonly failures: number; readonly retryAt: number; readonly error: unknown } | undefined;

  constructor({ pool, host, clock, remote }: HostSettings) {
    this.pool = pool;
    this.host = host;
    this.remote = remote;
    this.#clock = clock;
  }

  /** `POOL/HOST`, for people. */
  get name(): string {
    return `${this.pool}/${this.host.host}`;
  }

  /** What it said last, however long ago. */
  get lastState(): HostState | undefined {
    return this.#state;
  }

  /** How long it has not been reached, ms; undefined while it is. */
  get awayMs(): number | undefined {
    return this.#away === undefined ? undefined : this.#clock.monotonic() - this.#away.since;
  }

  /** Why it is not reached; undefined while it is. */
  get awayBecause(): unknown {
    return this.#away?.error;
  }

  /** Whether it is not to be asked yet. */
  get isCordoned(): boolean {
    return this.#away !== undefined && this.#clock.monotonic() < this.#away.retryAt;
  }

  /**
   * Looks at it now; several callers at once share one look. Not cancelled by a caller's signal, as others may wait for it too. Throws why it
   * cannot be reached.
   */
  look(): Promise<HostState> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /** A look that began after this call: what was decided elsewhere before it is in it. */
  async lookAnew(): Promise<HostState> {
    await this.#looking?.catch(() => undefined);
    return this.look();
  }

  /** Asks it something else. Throws why it cannot be reached. */
  async ask(question: HostQuestion): Promise<HostReply> {
    const away = this.#away;
    if (away !== undefined && this.isCordoned) throw away.error;
    try {
      const reply = await askHost(this.remote, this.host.host, question);
      this.#away = undefined;
      return reply;
    } catch (error) {
      // Giving up says nothing about the host.
      if (question.signal?.aborted !== true) this.#missed(error);
      throw error;
    }
  }

  /** What it has may have changed: it is asked anew. */
  forgetFacts(): void {
    this.#facts = undefined;
  }

  async #look(): Promise<HostState> {
    const known = this.#facts;
    const isFresh = known !== undefined && this.#clock.monotonic() - known.at < factsAgeMs;
    const reply = await this.ask(
      isFresh ? { argv: ['look'], timeoutMs: lookTimeoutMs } : { argv: ['look', 'facts'], timeoutMs: factsTimeoutMs },
    );
    const bootId = valueOf(reply, 'boot') ?? '';
    const facts = isFresh ? { ...known.facts, ...readDisk(reply) } : readFacts(reply);
    if (!isFresh) this.#facts = { facts, bootId, at: this.#clock.monotonic() };
    // Another boot can have another kernel, other disks, other GPUs.
    else if (known.bootId !== bootId) this.#facts = undefined;
    const machines = (reply.get('machine') ?? []).flatMap((text) => parseMachineRecord(text) ?? []);
    this.#state = { facts, bootId, revision: valueOf(reply, 'revision') ?? '0', machines };
    return this.#state;
  }

  #missed(error: unknown): void {
    const failures = (this.#away?.failures ?? 0) + 1;
    const now = this.#clock.monotonic();
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1));
    this.#away = { since: this.#away?.since ?? now, failures, retryAt: now + pauseMs, error };
  }
}

/** Why a host is not reached, as a clause. */
export function reasonOf(error: unknown): string {
  const text = error instanceof SvcError ? error.message : `it failed unexpectedly: ${messageOf(error)}`;
  return text.replace(/\.$/, '');
}
