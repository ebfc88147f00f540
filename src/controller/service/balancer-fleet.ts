import type { BalancerHostMember } from '../../domain/balancer-host.ts';
import type { ReplicasCommand } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { BalancerClient, type BalancerListeners, type BalancerView, type DialBalancer } from './balancer-client.ts';
import type { RotationSink } from './rotation.ts';

/** A balancer of which nothing was heard for so long, ms, does not count any more: it serves nobody, or nobody that could be waited for. */
const memberGoneMs = 3_000;
/** On another machine nobody listens for seconds while it is started again. */
const reconnectMs = 250;
/** How often those who wait look whether a balancer has stopped counting, ms. */
const lookMs = 100;

/** What a fleet of balancers needs. */
export interface FleetDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** How a member's balancer of this service is reached. */
  readonly dial: (member: BalancerHostMember) => DialBalancer;
  /** What a member is to be told instead, where it cannot reach a replica as this machine does. */
  readonly translate?: (command: ReplicasCommand) => ReplicasCommand;
}

interface Member {
  readonly client: BalancerClient;
  readonly stop: AbortController;
  readonly addedAt: number;
  /** Figures up to this report are of an earlier round. */
  roundFrom: number;
  hellosSeen: number;
}

/**
 * Several balancers of one service as if they were one. A set is in force when all that count have it; a figure is known when all of them have told it. A
 * balancer counts from when it is known until nothing was heard of it for a while, so that nobody waits for one that is gone; and what it knew ends
 * with it.
 */
export class BalancerFleet implements RotationSink {
  readonly #deps: FleetDeps;
  readonly #listeners: BalancerListeners;
  readonly #members = new Map<string, Member>();
  readonly #waiting = new Set<() => void>();
  #newest: ReplicasCommand | undefined;
  /** Rounds of reports: one is over when every balancer that counts has reported since it began. */
  #rounds = 0;
  #hellos = 0;

  constructor(deps: FleetDeps, listeners: BalancerListeners) {
    this.#deps = deps;
    this.#listeners = listeners;
  }

  /** Whom there is from now on. Who was there before stays connected; a new one gets the newest set at once. */
  setMembers(members: readonly BalancerHostMember[]): void {
    const wanted = new Map(members.map((member) => [`${member.name} ${member.host} ${member.port}`, member]));
    for (const [id, { stop }] of this.#members) {
      if (wanted.has(id)) continue;
      this.#members.delete(id);
      stop.abort();
    }
    for (const [id, member] of wanted) if (!this.#members.has(id)) this.#add(id, member);
    this.#look();
  }

  /** Lets go of all. */
  close(): void {
    this.setMembers([]);
  }

  get view(): BalancerView {
    const counting = this.#counting();
    const inFlight: Record<string, number> = {};
    let queued = 0;
    for (const { client } of counting) {
      queued += client.view.queued;
      for (const [id, count] of Object.entries(client.view.inFlight)) inFlight[id] = (inFlight[id] ?? 0) + count;
    }
    const connected = counting.length > 0 && counting.every(({ client }) => client.view.connected);
    return { connected, inFlight, queued, reports: this.#rounds, hellos: this.#hellos };
  }

  send(command: ReplicasCommand): void {
    this.#newest = this.#deps.translate?.(command) ?? command;
    for (const { client } of this.#members.values()) client.send(this.#newest);
  }

  async applied(revision: number, timeoutMs: number): Promise<boolean> {
    const { clock } = this.#deps;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const look = (): void => {
      if (this.#isApplied(revision)) resolve(true);
    };
    this.#waiting.add(look);
    const cancelTimeout = clock.after(timeoutMs, () => resolve(false));
    const cancelLook = clock.every(lookMs, look);
    look();
    const isApplied = await promise;
    this.#waiting.delete(look);
    cancelTimeout();
    cancelLook();
    // What was reported before the last one had it says nothing of the time since.
    if (isApplied) this.#beginRound();
    return isApplied;
  }

  #isApplied(revision: number): boolean {
    const counting = this.#counting();
    return counting.length > 0 && counting.every(({ client }) => client.appliedRevision >= revision);
  }

  #counting(): readonly Member[] {
    const now = this.#deps.clock.monotonic();
    return [...this.#members.values()].filter(({ client, addedAt }) => now - Math.max(addedAt, client.heardAt) < memberGoneMs);
  }

  #add(id: string, member: BalancerHostMember): void {
    const { clock, log, dial } = this.#deps;
    const listeners: BalancerListeners = {
      arrivals: (count) => this.#listeners.arrivals(count, this.view.queued),
      suspect: (replicaId, reason) => this.#listeners.suspect(replicaId, reason),
    };
    const options = { reconnectMs, silentMs: memberGoneMs, onNews: () => this.#look() };
    const client = new BalancerClient(dial(member), clock, log.child({ balancer: member.name }), listeners, options);
    const stop = new AbortController();
    this.#members.set(id, { client, stop, addedAt: clock.monotonic(), roundFrom: 0, hellosSeen: 0 });
    if (this.#newest !== undefined) client.send(this.#newest);
    void client.run(stop.signal);
  }

  /** Something about a member changed. */
  #look(): void {
    for (const member of this.#members.values()) {
      this.#hellos += member.client.view.hellos - member.hellosSeen;
      member.hellosSeen = member.client.view.hellos;
    }
    const counting = this.#counting();
    if (counting.length > 0 && counting.every(({ client, roundFrom }) => client.view.reports > roundFrom)) {
      this.#rounds += 1;
      this.#beginRound();
    }
    for (const look of this.#waiting) look();
  }

  #beginRound(): void {
    for (const member of this.#members.values()) member.roundFrom = member.client.view.reports;
  }
}
