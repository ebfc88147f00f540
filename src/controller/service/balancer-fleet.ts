import type { EdgeProxies, EdgeProxyMember } from '../../domain/edge-proxy/edge-proxy.ts';
import type { BrokenReplicas, ReplicasCommand } from '../../domain/balancer-link.ts';
import { brokenAfterMs } from '../../domain/unanswering.ts';
import { addOutcomes, boundOutcomes, type Outcomes } from '../../domain/outcomes.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import {
  BalancerClient,
  idsOf,
  type BalancerListeners,
  type BalancerPort,
  type BalancerView,
  type DialBalancer,
} from './balancer-client.ts';
import type { EndpointSink } from './endpoint-publisher.ts';
import { dialEdgeProxy } from '../edge-proxy/edge-proxy-connection.ts';
import { watchMembers } from '../edge-proxy/members.ts';
import { readSharedKey } from '../edge-proxy/shared-key.ts';
import { ReplicaRelays, ownAddress } from './replica-relay.ts';

/** A balancer silent for this long, ms, does not count: it serves no requests for which a drain must wait. */
const memberGoneMs = 3_000;
/** On another machine nothing listens for seconds while a balancer restarts. */
const reconnectMs = 250;
/** How often a wait checks whether a balancer has stopped counting, ms. */
const pollIntervalMs = 100;

interface FleetDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly dial: (member: EdgeProxyMember) => DialBalancer;
  /** Rewrites the endpoint set for members that cannot reach a replica at the address that this machine uses. */
  readonly translate?: (command: ReplicasCommand) => ReplicasCommand;
}

interface Member {
  readonly client: BalancerClient;
  readonly stop: AbortController;
  readonly addedAt: number;
  /** Stats reports up to this number belong to an earlier round. */
  roundFrom: number;
  hellosSeen: number;
}

/**
 * Several balancers of one service behind the interface of one. A set is applied, or a figure known, when all counting
 * balancers have applied or reported it. A balancer counts from its addition until it has been silent for a while. So
 * no wait blocks on a lost balancer, and its figures are dropped.
 */
export class BalancerFleet implements EndpointSink {
  readonly #deps: FleetDeps;
  readonly #members = new Map<string, Member>();
  readonly #waiting = new Set<() => void>();
  #newest: ReplicasCommand | undefined;
  /** Number of complete rounds. A round is complete when every counting balancer has reported since it began. */
  #rounds = 0;
  #hellos = 0;
  /** Of removed balancers. */
  #earlierOutcomes: Outcomes = {};

  constructor(deps: FleetDeps) {
    this.#deps = deps;
  }

  /** The returned function sets the members. Those that stay keep their connections; new ones get the newest set. */
  open(listeners: BalancerListeners): (members: readonly EdgeProxyMember[]) => void {
    return (members) => this.#setMembers(members, listeners);
  }

  close(): void {
    for (const { stop } of this.#members.values()) stop.abort();
    this.#members.clear();
    this.#update();
  }

  #setMembers(members: readonly EdgeProxyMember[], listeners: BalancerListeners): void {
    const desired = new Map(members.map((member) => [`${member.name} ${member.host} ${member.port}`, member]));
    for (const [id, { stop, client }] of this.#members) {
      if (desired.has(id)) continue;
      this.#earlierOutcomes = boundOutcomes(addOutcomes(this.#earlierOutcomes, client.view.outcomes), idsOf(this.#newest));
      this.#members.delete(id);
      stop.abort();
    }
    for (const [id, member] of desired) if (!this.#members.has(id)) this.#add(id, member, listeners);
    this.#update();
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
    // Also of those that do not count now: the sums never fall.
    const outcomes = [...this.#members.values()].reduce((sum, { client }) => addOutcomes(sum, client.view.outcomes), this.#earlierOutcomes);
    // A balancer without new requests for that long abstains: it knows nothing about the replica.
    const busyFrom = this.#deps.clock.monotonic() - brokenAfterMs;
    const judging = counting.filter(({ client }) => client.lastArrivalAt > busyFrom || Object.keys(client.view.broken).length > 0);
    const broken = brokenAtAll(judging.map(({ client }) => client.view.broken));
    return { connected, inFlight, queued, outcomes, broken, reports: this.#rounds, hellos: this.#hellos };
  }

  send(command: ReplicasCommand): void {
    this.#newest = this.#deps.translate?.(command) ?? command;
    for (const { client } of this.#members.values()) client.send(this.#newest);
  }

  async applied(revision: number, timeoutMs: number): Promise<boolean> {
    const { clock } = this.#deps;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const check = (): void => {
      if (this.#isApplied(revision)) resolve(true);
    };
    this.#waiting.add(check);
    const cancelTimeout = clock.after(timeoutMs, () => resolve(false));
    const cancelPoll = clock.every(pollIntervalMs, check);
    check();
    const isApplied = await promise;
    this.#waiting.delete(check);
    cancelTimeout();
    cancelPoll();
    // Reports from before the last balancer applied the set say nothing about the time after it.
    if (isApplied) this.#beginRound();
    return isApplied;
  }

  #isApplied(revision: number): boolean {
    const counting = this.#counting();
    return counting.length > 0 && counting.every(({ client }) => client.appliedRevision >= revision);
  }

  #counting(): readonly Member[] {
    const now = this.#deps.clock.monotonic();
    return [...this.#members.values()].filter(({ client, addedAt }) => now - Math.max(addedAt, client.lastSeenAt) < memberGoneMs);
  }

  #add(id: string, member: EdgeProxyMember, listeners: BalancerListeners): void {
    const { clock, log, dial } = this.#deps;
    const own: BalancerListeners = {
      ...listeners,
      arrivals: (count) => listeners.arrivals(count, this.view.queued),
    };
    const options = { reconnectMs, silentMs: memberGoneMs, onNews: () => this.#update() };
    const client = new BalancerClient(dial(member), clock, log.child({ balancer: member.name }), options);
    const stop = new AbortController();
    this.#members.set(id, { client, stop, addedAt: clock.monotonic(), roundFrom: 0, hellosSeen: 0 });
    if (this.#newest !== undefined) client.send(this.#newest);
    void client.run(own, stop.signal);
  }

  #update(): void {
    for (const member of this.#members.values()) {
      this.#hellos += member.client.view.hellos - member.hellosSeen;
      member.hellosSeen = member.client.view.hellos;
    }
    const counting = this.#counting();
    if (counting.length > 0 && counting.every(({ client, roundFrom }) => client.view.reports > roundFrom)) {
      this.#rounds += 1;
      this.#beginRound();
    }
    for (const check of this.#waiting) check();
  }

  #beginRound(): void {
    for (const member of this.#members.values()) member.roundFrom = member.client.view.reports;
  }
}

interface OpenFleetDeps {
  readonly edgeProxies: EdgeProxies;
  readonly membersFile: string;
  readonly key: string;
  /** Term of the controller; 0 where controllers have no rivals. */
  readonly term: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Disconnects the balancers when it aborts. */
  readonly signal: AbortSignal;
}

/** A service's balancers on edge proxies, behind the interface of one. Dials nothing before `open`. */
export function openFleet(deps: OpenFleetDeps): BalancerPort {
  const { edgeProxies, membersFile, key, term, clock, log, signal } = deps;
  const relays = new ReplicaRelays({ clock, log, ownAddress: ownAddress() });
  const translate = (command: ReplicasCommand): ReplicasCommand => relays.translate(command);
  const dial = dialEdgeProxy({ key: readSharedKey(edgeProxies.tokenFile), term, clock }, key);
  const fleet = new BalancerFleet({ clock, log, dial, translate });
  signal.addEventListener('abort', () => (relays.close(), fleet.close()), { once: true });
  return {
    get view() {
      return fleet.view;
    },
    send: (command) => fleet.send(command),
    applied: (revision, timeoutMs) => fleet.applied(revision, timeoutMs),
    open(listeners) {
      if (signal.aborted) return;
      const cancel = watchMembers(membersFile, clock, fleet.open(listeners));
      signal.addEventListener('abort', cancel, { once: true });
    },
  };
}

/**
 * One balancer alone may lack the network to a replica. So a replica counts only if all of them report it, except those
 * without requests: they know nothing about it.
 */
function brokenAtAll([first = {}, ...others]: readonly BrokenReplicas[]): BrokenReplicas {
  return Object.fromEntries(Object.entries(first).filter(([id]) => others.every((one) => one[id] !== undefined)));
}
