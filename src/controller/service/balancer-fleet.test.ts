import { PassThrough, Duplex } from 'node:stream';
import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import type { EdgeProxyMember } from '../../domain/edge-proxy/edge-proxy.ts';
import type { BrokenReplicas, ReplicasCommand } from '../../domain/balancer-link.ts';
import type { Outcomes } from '../../domain/outcomes.ts';
import { splitLines } from '../../shared/lines.ts';
import { BalancerFleet } from './balancer-fleet.ts';

const log = pino({ level: 'silent' });

/** A balancer in memory: takes sets, counts requests, reports. */
class Balancer {
  readonly member: EdgeProxyMember;
  /** No process answers on its address. */
  isDown = false;
  /** The balancer is connected but sends nothing, as when its machine is stopped. */
  isSilent = false;
  applied: ReplicasCommand | undefined;
  total = 0;
  readonly inFlight = new Map<number, number>();
  /** Undefined while the set has one version. */
  outcomes: Outcomes | undefined;
  broken: BrokenReplicas | undefined;
  #startedAt = 1;
  #links: Duplex[] = [];

  constructor(name: string) {
    this.member = { name, host: name, port: 1 };
  }

  dial(): Promise<Duplex> {
    if (this.isDown) return Promise.reject(new Error('ECONNREFUSED'));
    const [outbound, inbound] = [new PassThrough(), new PassThrough()];
    const link = Duplex.from({ writable: outbound, readable: inbound });
    const end = Duplex.from({ writable: inbound, readable: outbound });
    link.on('error', () => undefined).on('close', () => end.destroy());
    end.on('error', () => undefined).on('close', () => link.destroy());
    end.on(
      'data',
      splitLines((line) => this.#handle(line, end)),
    );
    this.#links.push(end);
    this.#say(end, { type: 'hello', pid: 1, port: 1, startedAt: this.#startedAt });
    return Promise.resolve(link);
  }

  /** A client sends a request. The replica gets it if it is in the set. */
  request(replica: number): void {
    if (this.isDown || this.isSilent) return;
    this.total += 1;
    if (this.applied?.replicas.some(({ id, state }) => id === replica && state === 'serving') === true)
      this.inFlight.set(replica, (this.inFlight.get(replica) ?? 0) + 1);
  }

  finish(replica: number): void {
    if (!this.isDown && !this.isSilent) this.inFlight.set(replica, Math.max(0, (this.inFlight.get(replica) ?? 0) - 1));
  }

  report(): void {
    const inFlight = Object.fromEntries(this.inFlight);
    const { total: requestsTotal, outcomes, broken } = this;
    for (const link of this.#links)
      this.#say(link, { type: 'stats', at: 0, requestsTotal, errorsTotal: 0, inFlight, queued: 0, outcomes, broken });
  }

  /** The balancer dies with its requests in flight. After its restart it counts from zero. */
  die(): void {
    this.isDown = true;
    this.inFlight.clear();
    this.total = 0;
    this.outcomes = undefined;
    this.#startedAt += 1;
    this.cut();
  }

  cut(): void {
    for (const link of this.#links.splice(0)) link.destroy();
  }

  #handle(line: string, link: Duplex): void {
    if (this.isSilent) return;
    const command: ReplicasCommand = JSON.parse(line);
    this.applied = command;
    this.#say(link, { type: 'applied', epoch: command.epoch, revision: command.revision });
  }

  #say(link: Duplex, report: object): void {
    if (!this.isSilent && !link.destroyed) link.write(`${JSON.stringify(report)}\n`);
  }
}

function fleetOf(balancers: readonly Balancer[], clock: FakeClock, arrivals: number[] = []): BalancerFleet {
  const dial = (member: EdgeProxyMember) => () =>
    balancers.find((one) => one.member.name === member.name)?.dial() ?? Promise.reject(new Error('nobody'));
  const fleet = new BalancerFleet({ clock, log, dial });
  fleet.open({ arrivals: (count) => void arrivals.push(count), suspect: () => undefined, tlsChanged: () => undefined })(
    balancers.map(({ member }) => member),
  );
  return fleet;
}

const set = (revision: number, state: 'serving' | 'draining' = 'serving'): ReplicasCommand => ({
  type: 'replicas',
  epoch: 'e',
  revision,
  replicas: [{ id: 1, address: { kind: 'tcp', host: 'r', port: 1 }, place: 'p', weight: 1, state }],
});

async function outcome(clock: FakeClock, work: Promise<boolean>, limitMs: number): Promise<boolean | 'waits'> {
  let result: boolean | 'waits' = 'waits';
  const settle = async (): Promise<void> => void (result = await work);
  void settle();
  await clock.advance(limitMs);
  return result;
}

/** Advances time while a balancer reports. */
async function passWith(clock: FakeClock, balancer: Balancer, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    await clock.advance(250);
    balancer.report();
  }
}

test('a set is applied when all balancers that are not silent have it', async () => {
  const clock = new FakeClock();
  const [a, b] = [new Balancer('a'), new Balancer('b')];
  const fleet = fleetOf([a, b], clock);
  await clock.advance(100);
  fleet.send(set(1));
  expect(await outcome(clock, fleet.applied(1, 5_000), 200)).toBe(true);
  expect(fleet.view.connected).toBe(true);

  b.isSilent = true;
  fleet.send(set(2));
  const applied = fleet.applied(2, 10_000);
  await passWith(clock, a, 2_500);
  expect(await outcome(clock, applied, 0)).toBe('waits');
  await passWith(clock, a, 1_500);
  expect(await outcome(clock, applied, 0)).toBe(true);
  expect(fleet.view.connected).toBe(true);
  fleet.close();
});

test('a new member gets the newest set; without members no set is applied', async () => {
  const clock = new FakeClock();
  const [a, b] = [new Balancer('a'), new Balancer('b')];
  const dials = new Map([a, b].map((one) => [one.member.name, one]));
  const fleet = new BalancerFleet({
    clock,
    log,
    dial: (member) => () => dials.get(member.name)?.dial() ?? Promise.reject(new Error('nobody')),
  });
  const setMembers = fleet.open({ arrivals: () => undefined, suspect: () => undefined, tlsChanged: () => undefined });
  fleet.send(set(1));
  expect(await outcome(clock, fleet.applied(1, 1_000), 1_100)).toBe(false);
  expect(fleet.view.connected).toBe(false);
  setMembers([a.member]);
  await clock.advance(100);
  const { hellos } = fleet.view;
  setMembers([a.member, b.member]);
  await clock.advance(300);
  expect(b.applied?.revision).toBe(1);
  expect(fleet.view.hellos).toBeGreaterThan(hellos);
  fleet.close();
});

test('each request counts once, whichever balancer restarts', async () => {
  const clock = new FakeClock();
  const arrivals: number[] = [];
  const [a, b] = [new Balancer('a'), new Balancer('b')];
  a.total = 1_000;
  const fleet = fleetOf([a, b], clock, arrivals);
  await clock.advance(100);
  a.report();
  b.report();
  await clock.advance(100);
  const sum = (): number => arrivals.reduce((total, count) => total + count, 0);
  expect(sum()).toBe(0);
  a.total += 5;
  b.total += 7;
  a.report();
  a.report();
  b.report();
  await clock.advance(100);
  expect(sum()).toBe(12);
  a.die();
  await clock.advance(500);
  a.isDown = false;
  a.total = 3;
  await clock.advance(500);
  a.report();
  b.report();
  await clock.advance(100);
  expect(sum()).toBe(15);
  expect(arrivals.every((count) => count >= 0)).toBe(true);
  b.cut();
  await clock.advance(500);
  b.total += 2;
  b.report();
  await clock.advance(100);
  expect(sum()).toBe(17);
  fleet.close();
});

/** Waits for a drained replica as `replica-end.ts` does. */
class Drain {
  isFree = false;
  #asked: { readonly hellos: number; readonly reports: number } | undefined;
  #isAsking = false;
  readonly #fleet: BalancerFleet;

  constructor(fleet: BalancerFleet) {
    this.#fleet = fleet;
  }

  async #ask(revision: number, hellos: number): Promise<void> {
    this.#isAsking = true;
    const isSettled = await this.#fleet.applied(revision, 1_000);
    this.#isAsking = false;
    this.#asked = { hellos, reports: this.#fleet.view.reports + (isSettled ? 0 : 1) };
  }

  check(revision: number): void {
    const { connected, hellos, reports, inFlight } = this.#fleet.view;
    if (this.#isAsking || this.isFree || !connected) return;
    if (hellos !== this.#asked?.hellos) {
      void this.#ask(revision, hellos);
    } else if (this.#asked !== undefined && reports > this.#asked.reports && (inFlight['1'] ?? 0) === 0) this.isFree = true;
  }
}

test('a drained replica is free only when no live balancer has its requests', async () => {
  const event = fc.oneof(
    { weight: 6, arbitrary: fc.record({ type: fc.constantFrom('request', 'finish', 'report' as const), who: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('cut', 'die', 'back' as const), who: fc.nat(1) }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('time' as const), who: fc.integer({ min: 1, max: 8 }) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 25 }), fc.array(event, { maxLength: 40 }), async (before, after) => {
      const clock = new FakeClock();
      const balancers = [new Balancer('a'), new Balancer('b')];
      const fleet = fleetOf(balancers, clock);
      // A live balancer reports each second, so the fleet never counts it as gone.
      let reportedAt = clock.now();
      const pass = async (tenths: number): Promise<void> => {
        for (let passed = 0; passed < tenths; passed += 1) {
          await clock.advance(100);
          if (clock.now() - reportedAt < 1_000) continue;
          for (const one of balancers) one.report();
          reportedAt = clock.now();
        }
      };
      const apply = async ({ type, who }: { readonly type: string; readonly who: number }): Promise<void> => {
        const one = balancers[who % 2];
        if (type === 'request') one?.request(1);
        else if (type === 'finish') one?.finish(1);
        else if (type === 'report') one?.report();
        else if (type === 'cut') one?.cut();
        else if (type === 'die') one?.die();
        else if (type === 'back' && one !== undefined) one.isDown = false;
        else await pass(who);
        await clock.settle();
      };
      fleet.send(set(1));
      await clock.advance(300);
      for (const one of before) await apply(one);
      fleet.send(set(2, 'draining'));
      const drain = new Drain(fleet);
      for (const one of after) {
        await apply(one);
        drain.check(2);
        await clock.settle();
        if (drain.isFree) break;
      }
      const held = balancers.filter(({ isDown }) => !isDown).reduce((sum, { inFlight }) => sum + (inFlight.get(1) ?? 0), 0);
      expect(drain.isFree && held > 0).toBe(false);
      fleet.close();
      await clock.advance(5_000);
    }),
    { numRuns: 40 },
  );
});

test('a drained replica without requests becomes free within seconds', async () => {
  const clock = new FakeClock();
  const balancers = [new Balancer('a'), new Balancer('b'), new Balancer('c')];
  const fleet = fleetOf(balancers, clock);
  fleet.send(set(1));
  await clock.advance(300);
  balancers[2]?.die();
  fleet.send(set(2, 'draining'));
  const drain = new Drain(fleet);
  const took = await clock.advanceUntil(() => {
    for (const one of balancers) one.report();
    drain.check(2);
    return drain.isFree;
  }, 10_000);
  expect(took).toBeLessThan(5_000);
  fleet.close();
});

const counts = (responses: number, errors = 0): Outcomes[string] => ({ responses, errors, firstByteCounts: [responses - errors] });

test('sums of outcomes never fall: over restarts, silent replicas in reports, and removed balancers', async () => {
  const clock = new FakeClock();
  const [a, b] = [new Balancer('a'), new Balancer('b')];
  const fleet = new BalancerFleet({ clock, log, dial: (member) => () => (member.name === 'a' ? a : b).dial() });
  const setMembers = fleet.open({ arrivals: () => undefined, suspect: () => undefined, tlsChanged: () => undefined });
  const report = async (one: Balancer, outcomes: Outcomes | undefined): Promise<Outcomes> => {
    one.outcomes = outcomes;
    one.report();
    await clock.advance(10);
    return fleet.view.outcomes;
  };
  setMembers([a.member, b.member]);
  await clock.advance(100);
  // What a balancer counted before this process began to listen is not new.
  expect(await report(a, { 1: counts(100) })).toEqual({});
  expect(await report(b, {})).toEqual({});
  expect(await report(a, { 1: counts(103, 1), 2: counts(2) })).toEqual({ 1: counts(3, 1), 2: counts(2) });
  expect(await report(b, { 2: counts(5, 5) })).toEqual({ 1: counts(3, 1), 2: counts(7, 5) });
  // The set has one version for a moment; afterwards replica 1 is left out.
  expect(await report(a, undefined)).toEqual({ 1: counts(3, 1), 2: counts(7, 5) });
  expect(await report(a, { 2: counts(3) })).toEqual({ 1: counts(3, 1), 2: counts(8, 5) });
  expect(await report(a, { 1: counts(104, 1), 2: counts(3) })).toEqual({ 1: counts(4, 1), 2: counts(8, 5) });
  a.die();
  await clock.advance(5_000);
  expect(fleet.view.outcomes).toEqual({ 1: counts(4, 1), 2: counts(8, 5) });
  a.isDown = false;
  await clock.advance(500);
  expect(await report(a, { 1: counts(6) })).toEqual({ 1: counts(10, 1), 2: counts(8, 5) });
  setMembers([b.member]);
  expect(await report(b, { 2: counts(6, 6) })).toEqual({ 1: counts(10, 1), 2: counts(9, 6) });
  fleet.close();
});

test('outcomes of gone replicas are bounded, also those of removed balancers', async () => {
  const clock = new FakeClock();
  const one = new Balancer('a');
  const fleet = new BalancerFleet({ clock, log, dial: () => () => one.dial() });
  const setMembers = fleet.open({ arrivals: () => undefined, suspect: () => undefined, tlsChanged: () => undefined });
  const report = async (outcomes: Outcomes): Promise<void> => {
    one.outcomes = outcomes;
    one.report();
    await clock.advance(10);
  };
  setMembers([one.member]);
  await clock.advance(100);
  await report({});
  // One replica after the other serves, and leaves.
  for (let id = 1; id <= 250; id += 1) await report({ [id]: counts(1) });
  expect(Object.keys(fleet.view.outcomes)).toHaveLength(101);
  expect(fleet.view.outcomes).toMatchObject({ 250: counts(1) });
  setMembers([]);
  expect(Object.keys(fleet.view.outcomes)).toHaveLength(100);
  fleet.close();
});

test('a replica counts as broken only while every balancer reports it', async () => {
  const clock = new FakeClock();
  const balancers = [new Balancer('a'), new Balancer('b')];
  const fleet = fleetOf(balancers, clock);
  await clock.advance(1_000);
  const failed = { hung: 5, cutOff: 0, seconds: 60, ageSeconds: 60 };
  for (const [index, one] of balancers.entries()) one.broken = index === 0 ? { 1: failed, 2: failed } : { 2: failed };
  for (const one of balancers) one.report();
  await clock.advance(100);
  expect(fleet.view.broken).toEqual({ 2: failed });
  fleet.close();
});

test('a balancer without requests for a minute abstains about broken replicas', async () => {
  const clock = new FakeClock();
  const balancers = [new Balancer('a'), new Balancer('b')];
  const fleet = fleetOf(balancers, clock);
  const failed = { hung: 5, cutOff: 0, seconds: 60, ageSeconds: 60 };
  const [one, other] = balancers;
  if (one !== undefined) one.broken = { 1: failed };
  const seconds = async (count: number): Promise<void> => {
    for (let second = 0; second < count; second += 1) {
      await clock.advance(1_000);
      for (const balancer of balancers) balancer.report();
    }
    await clock.advance(100);
  };
  await seconds(50);
  other?.request(2);
  await seconds(55);
  expect(fleet.view.broken).toEqual({});
  await seconds(10);
  expect(fleet.view.broken).toEqual({ 1: failed });
  fleet.close();
});
