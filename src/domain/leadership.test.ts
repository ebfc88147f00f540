import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decideLease,
  holderName,
  hostOfHolder,
  leadsUntil,
  leaseActMs,
  leaseCandidate,
  leaseDurationMs,
  leasePollMs,
  leaseReleaseMs,
  leaseRenewMs,
  sawLease,
  wroteLease,
  type LeaseState,
  type LeaseView,
} from './leadership.ts';

const unheldLease: LeaseView = { holder: null, term: 0, renewal: '', durationMs: 0 };
const ofOther: LeaseView = { holder: 'other', term: 3, renewal: 'a', durationMs: leaseDurationMs };
const ofMine: LeaseView = { holder: 'me', term: 4, renewal: 'b', durationMs: leaseDurationMs };
const me = leaseCandidate('me');
const leader = wroteLease(me, ofMine, 1_000);

test("the holder's name contains its host", () => {
  expect(hostOfHolder(holderName('svc-controller-7d4b9c-x2x9z', '0123abcd'))).toBe('svc-controller-7d4b9c-x2x9z');
  expect(hostOfHolder('with_underscore_0123abcd')).toBe('with_underscore');
  expect(hostOfHolder('alone')).toBe('alone');
});

describe('a candidate', () => {
  test('reads the lease before any other decision', () => {
    expect(decideLease(me, 0)).toEqual({ action: 'look' });
  });

  test('takes a lease that was never held', () => {
    expect(decideLease(sawLease(me, unheldLease, 5), 5)).toEqual({ action: 'take', seen: unheldLease });
  });

  test('waits the lease duration by its own clock after it saw the renewal', () => {
    const saw = sawLease(sawLease(me, ofOther, 100), ofOther, 5_000);
    expect(decideLease(saw, 5_000)).toEqual({ action: 'wait', forMs: leasePollMs });
    expect(decideLease(saw, 100 + leaseDurationMs - 1)).toEqual({ action: 'wait', forMs: 1 });
    expect(decideLease(saw, 100 + leaseDurationMs)).toEqual({ action: 'take', seen: ofOther });
  });

  test('restarts its wait at every renewal', () => {
    const saw = sawLease(sawLease(me, ofOther, 0), { ...ofOther, renewal: 'later' }, leaseDurationMs - 100);
    expect(decideLease(saw, leaseDurationMs).action).toBe('wait');
    expect(decideLease(saw, 2 * leaseDurationMs - 100).action).toBe('take');
  });

  test('takes a released lease at its next poll', () => {
    const released = { ...ofOther, renewal: 'last', durationMs: leaseReleaseMs };
    const saw = sawLease(sawLease(me, ofOther, 0), released, 500);
    expect(decideLease(saw, 500)).toEqual({ action: 'wait', forMs: leaseReleaseMs });
    expect(decideLease(saw, 501)).toEqual({ action: 'take', seen: released });
  });

  test('waits the full duration when a user shortened the lease or removed its holder', () => {
    for (const edited of [
      { ...ofOther, durationMs: 1_000 },
      { ...ofOther, holder: null },
    ]) {
      expect(decideLease(sawLease(me, edited, 0), leaseDurationMs - 1).action).toBe('wait');
      expect(decideLease(sawLease(me, edited, 0), leaseDurationMs).action).toBe('take');
    }
  });

  test('reads again when another candidate was faster', () => {
    expect(decideLease(wroteLease(sawLease(me, ofOther, 0), undefined, 9_000), 9_000)).toEqual({ action: 'look' });
  });

  test('renews a lease that it took without getting the response', () => {
    expect(decideLease(sawLease(me, ofMine, 10), 10)).toEqual({ action: 'renew', seen: ofMine });
  });
});

describe('a leader', () => {
  test('renews at the renewal interval', () => {
    expect(decideLease(leader, 1_000)).toEqual({ action: 'wait', forMs: leaseRenewMs });
    expect(decideLease(leader, 1_000 + leaseRenewMs)).toEqual({ action: 'renew', seen: ofMine });
  });

  test('may act for a limited time after it sent its renewal', () => {
    expect(leadsUntil(leader)).toBe(1_000 + leaseActMs);
    expect(leadsUntil(me)).toBeUndefined();
  });

  test('loses the lease when renewals fail, even if no other process took it', () => {
    expect(decideLease(leader, 1_000 + leaseActMs - 1).action).toBe('renew');
    expect(decideLease(leader, 1_000 + leaseActMs)).toEqual({ action: 'lost', why: 'it could not be renewed for 4.5 s' });
  });

  test('loses the lease when another process holds it', () => {
    expect(decideLease(sawLease(leader, { ...ofOther, term: 5 }, 1_500), 1_500)).toEqual({
      action: 'lost',
      why: 'other holds it with term 5',
    });
  });

  test('reads after a failed write and continues when the write was its own', () => {
    const unsure = wroteLease(leader, undefined, 3_000);
    expect(decideLease(unsure, 3_000)).toEqual({ action: 'look' });
    const own = { ...ofMine, renewal: 'arrived after all' };
    expect(decideLease(sawLease(unsure, own, 3_010), 3_010)).toEqual({ action: 'renew', seen: own });
  });
});

/** One machine in a simulation: its clock has an offset and a speed of its own, and it can be paused. */
interface Machine {
  state: LeaseState;
  readonly origin: number;
  readonly speed: number;
  pausedUntil: number;
}

test('two never lead at once, and one leads within ten seconds without faults', () => {
  const event = fc.record({
    machine: fc.nat(2),
    kind: fc.constantFrom('step', 'step', 'step', 'step', 'pause', 'lose-request', 'lose-answer', 'late-answer'),
    passMs: fc.nat(1_500),
    delayMs: fc.nat(12_000),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 150 }), (events) => {
      let now = 0;
      let lease = unheldLease;
      let renewals = 0;
      const machines = [0.9, 1, 1.1].map((speed, index): Machine => ({
        state: leaseCandidate(`m${index}`),
        origin: index * 1e6,
        speed,
        pausedUntil: 0,
      }));
      const local = (machine: Machine): number => machine.origin + now * machine.speed;
      const acts = (machine: Machine): boolean => local(machine) < (leadsUntil(machine.state) ?? -1);
      const step = (machine: Machine, kind: string, delayMs: number): void => {
        if (now < machine.pausedUntil) return;
        const { self, held } = machine.state;
        // A candidate reads first, as the daemon does.
        if (held === undefined) machine.state = sawLease(machine.state, lease, local(machine));
        const decision = decideLease(machine.state, local(machine));
        if (decision.action === 'lost') machine.state = leaseCandidate(`${self}'`);
        if (decision.action === 'look') machine.state = sawLease(machine.state, lease, local(machine));
        if (decision.action !== 'take' && decision.action !== 'renew') return;
        const sentAtMs = local(machine);
        if (kind === 'lose-request') return;
        const isCurrent = lease.renewal === decision.seen.renewal && lease.term === decision.seen.term;
        if (isCurrent) {
          renewals += 1;
          const term = lease.holder === self ? lease.term : lease.term + 1;
          lease = { holder: self, term, renewal: String(renewals), durationMs: leaseDurationMs };
        }
        if (kind === 'late-answer') machine.pausedUntil = now + delayMs;
        machine.state =
          kind === 'lose-answer'
            ? { ...machine.state, seen: undefined }
            : wroteLease(machine.state, isCurrent ? lease : undefined, sentAtMs);
      };
      for (const { machine: index, kind, passMs, delayMs } of events) {
        now += passMs;
        const machine = machines[index];
        if (machine === undefined) continue;
        if (kind === 'pause') machine.pausedUntil = now + delayMs;
        else step(machine, kind, delayMs);
        expect(machines.filter(acts).length).toBeLessThanOrEqual(1);
      }
      const calmSince = Math.max(now, ...machines.map(({ pausedUntil }) => pausedUntil));
      for (now = calmSince; now < calmSince + 10_000; now += 100) {
        for (const machine of machines) step(machine, 'step', 0);
        expect(machines.filter(acts).length).toBeLessThanOrEqual(1);
      }
      expect(machines.filter(acts)).toHaveLength(1);
    }),
  );
});
