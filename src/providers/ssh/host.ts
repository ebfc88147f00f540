import { isDeepStrictEqual } from 'node:util';
import type { SshHost } from '../../domain/config.ts';
import type { Remote } from '../../remote/remote.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { parseStartTicks } from '../../shared/system/process-identity.ts';
import { readDisk, readFacts, type HostFacts } from './host-facts.ts';
import { askHost, type HostRequest, valueOf, type HostReply } from './host-link.ts';
import { parseMachineRecord, type MachineRecord } from './machine-record.ts';

/** The last report of an SSH host. */
export interface HostState {
  readonly facts: HostFacts;
  /** Boot of the SSH host, or of its container. After another boot, no earlier process is left. */
  readonly bootId: string;
  /** Number of machines ever created there. The SSH host rejects decisions from an older state. */
  readonly revision: string;
  readonly machines: readonly MachineRecord[];
}

interface HostSettings {
  readonly pool: string;
  readonly host: SshHost;
  readonly clock: Clock;
  /** Works on the SSH host itself, not on one of its machines. */
  readonly remote: Remote;
}

/** ms. A poll takes a round trip or two; opening the connection takes longest. */
const pollTimeoutMs = 12_000;

/** ms. A GPU's driver may have to wake up first. */
const factsTimeoutMs = 30_000;

/** ms. Hardware and software rarely change. */
const factsAgeMs = 300_000;

const reconnect: Backoff = { firstMs: 2_000, longestMs: 60_000 };

/** One SSH host. While it is unreachable, a backoff cordons it: callers get the last error without a request. */
export class Host {
  readonly pool: string;
  readonly config: SshHost;
  readonly remote: Remote;
  readonly #clock: Clock;
  #facts: { readonly facts: HostFacts; readonly bootId: string; readonly at: number } | undefined;
  #state: HostState | undefined;
  #checking: Promise<HostState> | undefined;
  #polling: Promise<HostState> | undefined;
  #outage: { readonly since: number; readonly failures: number; readonly retryAt: number; readonly error: unknown } | undefined;

  constructor({ pool, host, clock, remote }: HostSettings) {
    this.pool = pool;
    this.config = host;
    this.remote = remote;
    this.#clock = clock;
  }

  get name(): string {
    return `${this.pool}/${this.config.host}`;
  }

  /** Undefined while it is reachable. */
  get unreachableMs(): number | undefined {
    return this.#outage === undefined ? undefined : this.#clock.monotonic() - this.#outage.since;
  }

  get unreachableReason(): unknown {
    return this.#outage?.error;
  }

  /** Whether the backoff after a failure is not over yet. */
  get isCordoned(): boolean {
    return this.#outage !== undefined && this.#clock.monotonic() < this.#outage.retryAt;
  }

  /** Callers share one poll, so their signals do not cancel it. Throws why the SSH host cannot be reached. */
  poll(): Promise<HostState> {
    this.#polling ??= this.#poll().finally(() => (this.#polling = undefined));
    return this.#polling;
  }

  /** Begins after this call, so that it includes all earlier decisions, also of other processes. */
  async pollFresh(): Promise<HostState> {
    await this.#polling?.catch(() => undefined);
    return this.poll();
  }

  /**
   * As `poll`, but the facts and the free disk may be older. While no machine comes, goes or changes, it starts no
   * process on the SSH host.
   */
  machines(): Promise<HostState> {
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined));
    return this.#checking;
  }

  /** As `machines`; begins after this call, as `pollFresh`. */
  async machinesFresh(): Promise<HostState> {
    await this.#checking?.catch(() => undefined);
    return this.machines();
  }

  /** Throws why the SSH host cannot be reached. */
  async ask(request: HostRequest): Promise<HostReply> {
    const outage = this.#outage;
    if (outage !== undefined && this.isCordoned) throw outage.error;
    try {
      const reply = await askHost(this.remote, this.config.host, request);
      this.#outage = undefined;
      return reply;
    } catch (error) {
      // A cancelled request says nothing about the SSH host.
      if (request.signal?.aborted !== true) this.#missed(error);
      throw error;
    }
  }

  /** The next poll reads the facts again, because hardware or software may have changed. */
  forgetFacts(): void {
    this.#facts = undefined;
  }

  async #poll(): Promise<HostState> {
    const known = this.#facts;
    const isFresh = known !== undefined && this.#clock.monotonic() - known.at < factsAgeMs;
    const reply = await this.ask(
      isFresh ? { argv: ['look'], timeoutMs: pollTimeoutMs } : { argv: ['look', 'facts'], timeoutMs: factsTimeoutMs },
    );
    const bootId = valueOf(reply, 'boot') ?? '';
    const facts = isFresh ? { ...known.facts, ...readDisk(reply) } : readFacts(reply);
    if (!isFresh) this.#facts = { facts, bootId, at: this.#clock.monotonic() };
    // A reboot may change the kernel, disks and GPUs.
    else if (known.bootId !== bootId) this.#facts = undefined;
    const machines = (reply.get('machine') ?? []).flatMap((text) => parseMachineRecord(text) ?? []);
    this.#state = { facts, bootId, revision: valueOf(reply, 'revision') ?? '0', machines };
    return this.#state;
  }

  async #check(): Promise<HostState> {
    const state = this.#state;
    return state !== undefined && this.#outage === undefined && (await this.#isStill(state)) ? state : this.pollFresh();
  }

  /** The SSH host counts each creation, so with an equal count only known machines can have changed. */
  async #isStill({ facts, bootId, revision, machines }: HostState): Promise<boolean> {
    const read = async (path: string): Promise<string> => (await this.remote.readText?.(path)) ?? '';
    const [boot, first, count, ...records] = await Promise.all(
      [bootIdFile, '/proc/1/stat', `${facts.dir}/revision`, ...machines.map(({ dir }) => `${dir}/machine.json`)].map(read),
    );
    return (
      bootOf(boot, first) === bootId &&
      (count?.trim() || '0') === revision &&
      machines.every((record, index) => isDeepStrictEqual(parseMachineRecord(records[index] ?? ''), record))
    );
  }

  #missed(error: unknown): void {
    const failures = (this.#outage?.failures ?? 0) + 1;
    const now = this.#clock.monotonic();
    this.#outage = { since: this.#outage?.since ?? now, failures, retryAt: now + delayMs(reconnect, failures), error };
  }
}

const bootIdFile = '/proc/sys/kernel/random/boot_id';

/** As `look` of `src/node/host.sh` reports it. */
function bootOf(bootId = '', stat = ''): string {
  return stat === '' ? bootId.trim() : `${bootId.trim()}-${parseStartTicks(stat)}`;
}

/** Why an SSH host cannot be reached, as a clause. */
export function reasonOf(error: unknown): string {
  const text = error instanceof SvcError ? error.message : `it failed unexpectedly: ${messageOf(error)}`;
  return text.replace(/\.$/, '');
}
