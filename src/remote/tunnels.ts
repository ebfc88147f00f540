import { delayMs, type Backoff } from '../shared/backoff.ts';
import type { CancelTimer, Clock } from '../shared/clock.ts';
import type { Tunnel, TunnelEnd, TunnelRecords } from './tunnel-records.ts';

/** Carries the tunnels to one machine: its ssh, or the forwarder of its Kubernetes cluster. */
export interface TunnelCarrier<Route extends object = object> {
  readonly records: TunnelRecords<Route>;
  readonly name: string;
  readonly newRoute: Route;
  readonly keeper: TunnelKeeper;
  /** An end as the record names it. */
  endOf(to: TunnelEnd): TunnelEnd;
  /** Makes the record's sockets lead to their ends. Does nothing when the record was removed. */
  carry(signal?: AbortSignal): Promise<void>;
  /** Ends tunnels of a removed record and removes their sockets. */
  drop(tunnels: readonly Tunnel[]): Promise<void>;
}

/** Local sockets that lead to a machine's ports and sockets. A record on disk shares them with later processes, too. */
export class Tunnels<Route extends object = object> {
  readonly #carrier: TunnelCarrier<Route>;

  constructor(carrier: TunnelCarrier<Route>) {
    this.#carrier = carrier;
  }

  /** Opens a tunnel and keeps it open while this process lives. The socket is the same each time. */
  async open(to: TunnelEnd, signal?: AbortSignal): Promise<string> {
    const { records, name, newRoute, keeper } = this.#carrier;
    const socket = records.socket(name, to);
    let record = records.read(name);
    do {
      const tunnels = record?.tunnels ?? [];
      if (!hasSocket(tunnels, socket))
        records.write(name, { tunnels: [...tunnels, { socket, to: this.#carrier.endOf(to) }], route: newRoute });
      await this.#carrier.carry(signal);
      record = records.read(name);
      // Another process that opened a tunnel at the same moment may have overwritten the record. A removed record stays
      // removed: with a new one this process would try to reach a terminated machine without end.
    } while (record !== undefined && !hasSocket(record.tunnels, socket));
    keeper.start();
    return socket;
  }

  /** Keeps tunnels that an earlier process opened, if any. Cheap. */
  keep(): void {
    this.#carrier.keeper.start();
  }

  async close(): Promise<void> {
    const { records, name } = this.#carrier;
    const record = records.read(name);
    records.remove(name);
    if (record !== undefined) await this.#carrier.drop(record.tunnels);
  }
}

function hasSocket(tunnels: readonly Tunnel[], socket: string): boolean {
  return tunnels.some((tunnel) => tunnel.socket === socket);
}

interface KeptTunnels {
  /** False once they were closed, perhaps by another process. */
  hasTunnels(): boolean;
  /** Called once a second, so it starts no process. */
  areUp(): boolean | Promise<boolean>;
  carry(): Promise<void>;
  /** Keeps the process that holds them from ending as idle, and ends it when it hangs. */
  keepAlive(): Promise<void>;
}

const pollIntervalMs = 1_000;

const pollsPerKeepAlive = 30;

const repairBackoff: Backoff = { firstMs: 1_000, longestMs: 10_000 };

/** Keeps tunnels open while this process lives and they exist. */
export class TunnelKeeper {
  readonly #kept: KeptTunnels;
  readonly #clock: Clock;
  #stop: CancelTimer | undefined;
  #isBusy = false;
  #polls = 0;
  #failures = 0;
  #retryAt = 0;

  constructor(kept: KeptTunnels, clock: Clock) {
    this.#kept = kept;
    this.#clock = clock;
  }

  /** The first poll happens at once: without tunnels it ends this again. */
  start(): void {
    if (this.#stop !== undefined) return;
    this.#stop = this.#clock.every(pollIntervalMs, () => void this.#poll());
    void this.#poll();
  }

  async #poll(): Promise<void> {
    if (this.#isBusy || this.#clock.monotonic() < this.#retryAt) return;
    this.#isBusy = true;
    try {
      if (this.#kept.hasTunnels()) await this.#check();
      else {
        this.#stop?.();
        this.#stop = undefined;
      }
      this.#failures = 0;
    } catch {
      // This poll only retries: processes that work on the machine get the error themselves.
      this.#failures += 1;
      this.#retryAt = this.#clock.monotonic() + delayMs(repairBackoff, this.#failures);
    } finally {
      this.#isBusy = false;
    }
  }

  async #check(): Promise<void> {
    this.#polls = (this.#polls + 1) % pollsPerKeepAlive;
    if (this.#polls === 0) await this.#kept.keepAlive();
    if (!(await this.#kept.areUp())) await this.#kept.carry();
  }
}
