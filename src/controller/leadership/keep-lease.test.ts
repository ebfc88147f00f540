import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { leaseActMs, leaseDurationMs, type LeaseLock, type LeaseView } from '../../domain/leadership.ts';
import type { Clock } from '../../shared/clock.ts';
import { leaseAbove } from '../../store/database-lease.ts';
import { keepLease, leaseAfter, type LeaseKeeping } from './keep-lease.ts';

/** A lease in memory. Its calls may fail, or take effect although the answer is lost. */
class Lease {
  view: LeaseView = { holder: null, term: 0, renewal: '0', durationMs: 0 };
  mode: 'fine' | 'away' | 'answer-lost' | 'hangs' = 'fine';
  #writes = 0;

  lock(): LeaseLock {
    return {
      read: async () => {
        await this.#weather();
        return this.view;
      },
      write: async (seen, holder, durationMs) => {
        if (this.mode === 'away' || this.mode === 'hangs') await this.#weather();
        const isStale = seen.renewal !== this.view.renewal;
        if (!isStale) {
          this.#writes += 1;
          this.view = { holder, term: seen.holder === holder ? seen.term : seen.term + 1, renewal: String(this.#writes), durationMs };
        }
        if (this.mode === 'answer-lost') throw new Error('connection lost');
        return isStale ? undefined : this.view;
      },
    };
  }

  async #weather(): Promise<void> {
    if (this.mode === 'away') throw new Error('no answer');
    if (this.mode === 'hangs') await new Promise(() => undefined);
  }
}

/** One candidate, and until when it believes that it may act. */
class Candidate {
  term: number | undefined;
  until = 0;
  why: string | undefined;
  others: string[] = [];
  isDone = false;
  readonly stop = new AbortController();

  constructor(lease: LeaseLock, name: string, clock: Clock) {
    const keeping = {
      lock: lease,
      self: name,
      clock,
      held: (term: number, until: number) => {
        this.term = term;
        this.until = until;
      },
      otherLeads: (holder: string) => void this.others.push(holder),
      failed: () => undefined,
    };
    void this.#keep(keeping);
  }

  async #keep(keeping: LeaseKeeping): Promise<void> {
    this.why = await keepLease(keeping, this.stop.signal);
    this.isDone = true;
  }

  mayAct(clock: Clock): boolean {
    return !this.isDone && !this.stop.signal.aborted && clock.monotonic() < this.until;
  }
}

test('the first candidate leads and renews; the second stands by and knows the leader', async () => {
  const clock = new FakeClock();
  const lease = new Lease();
  const first = new Candidate(lease.lock(), 'a', clock);
  await clock.advance(100);
  const second = new Candidate(lease.lock(), 'b', clock);
  await clock.advance(60_000);
  expect(first).toMatchObject({ term: 1, isDone: false });
  expect(second.term).toBeUndefined();
  expect(new Set(second.others)).toEqual(new Set(['a']));
  expect(first.until - clock.monotonic()).toBeGreaterThan(leaseActMs - 2_100);
});

test('a released lease is acquired in less than a second', async () => {
  const clock = new FakeClock();
  const lease = new Lease();
  const first = new Candidate(lease.lock(), 'a', clock);
  await clock.advance(100);
  const second = new Candidate(lease.lock(), 'b', clock);
  await clock.advance(5_000);
  first.stop.abort();
  const took = await clock.advanceUntil(() => second.term !== undefined, 5_000, 50);
  expect(took).toBeLessThan(1_000);
  expect(first).toMatchObject({ isDone: true, why: undefined });
  expect(second.term).toBe(2);
});

test('a leader that cannot renew reports the loss before another one leads', async () => {
  const clock = new FakeClock();
  const lease = new Lease();
  const broken = new Lease();
  const lock = lease.lock();
  const own: LeaseLock = {
    read: (signal) => (broken.mode === 'fine' ? lock.read(signal) : broken.lock().read(signal)),
    write: (...args) => (broken.mode === 'fine' ? lock.write(...args) : broken.lock().write(...args)),
  };
  const first = new Candidate(own, 'a', clock);
  await clock.advance(100);
  const second = new Candidate(lock, 'b', clock);
  await clock.advance(5_000);
  broken.mode = 'hangs';
  await clock.advanceUntil(() => first.isDone, 20_000, 50);
  expect(first.why).toContain('could not be renewed');
  expect(second.term).toBeUndefined();
  const took = await clock.advanceUntil(() => second.term !== undefined, 20_000, 50);
  expect(took).toBeLessThan(leaseDurationMs);
});

test('only the successor of a holder known to be dead leads at once', async () => {
  const clock = new FakeClock();
  const lease = new Lease();
  lease.view = { holder: 'dead', term: 4, renewal: 'r', durationMs: leaseDurationMs };
  const other = new Candidate(lease.lock(), 'other', clock);
  await clock.advance(1_000);
  expect(other.term).toBeUndefined();
  const successor = new Candidate(leaseAfter(lease.lock(), 'dead'), 'b', clock);
  await clock.advance(100);
  expect(successor.term).toBe(5);
});

test('a short database outage does not cost the leader its lease', async () => {
  const clock = new FakeClock();
  const lease = new Lease();
  const first = new Candidate(lease.lock(), 'a', clock);
  await clock.advance(3_000);
  lease.mode = 'away';
  await clock.advance(3_000);
  lease.mode = 'answer-lost';
  await clock.advance(500);
  lease.mode = 'fine';
  await clock.advance(30_000);
  expect(first).toMatchObject({ term: 1, isDone: false });
});

test('whatever happens to the calls, two candidates never act at the same time', async () => {
  const weather = fc.record({
    who: fc.constantFrom(0, 1),
    mode: fc.constantFrom<Lease['mode']>('fine', 'away', 'answer-lost', 'hangs'),
    ms: fc.nat(9_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(weather, { maxLength: 12 }), async (changes) => {
      const clock = new FakeClock();
      const lease = new Lease();
      const modes: Lease['mode'][] = ['fine', 'fine'];
      const lock = lease.lock();
      const through = (who: number): LeaseLock => ({
        read: (signal) => ((lease.mode = modes[who] ?? 'fine'), lock.read(signal)),
        write: (...args) => ((lease.mode = modes[who] ?? 'fine'), lock.write(...args)),
      });
      const candidates = ['a', 'b'].map((name, who) => new Candidate(through(who), name, clock));
      for (const { who, mode, ms } of changes) {
        modes[who] = mode;
        for (let passed = 0; passed < ms; passed += 250) {
          await clock.advance(250);
          expect(candidates.filter((one) => one.mayAct(clock)).length).toBeLessThan(2);
        }
      }
      for (const one of candidates) one.stop.abort();
      await clock.advance(10_000);
    }),
    { numRuns: 40 },
  );
});

/** The terms that a database stores. */
function terms(): Parameters<typeof leaseAbove>[1] {
  let newest = 0;
  return {
    read: async () => ({ holder: null, term: newest, renewal: '0', durationMs: 0 }),
    claim: async (from, term) => {
      if (newest !== from) return false;
      newest = term;
      return true;
    },
  };
}

test("after edits of a lease's term, one candidate acts and terms only grow", async () => {
  const edit = fc.record({
    kind: fc.constantFrom('edit', 'edit', 'pause', 'delete'),
    who: fc.constantFrom(0, 1),
    term: fc.nat(6),
    ms: fc.nat(12_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { maxLength: 10 }), async (edits) => {
      const clock = new FakeClock();
      const lease = new Lease();
      const database = terms();
      const isUnreachable = [false, false];
      const candidate = (who: number, name: string): Candidate => {
        const lock = lease.lock();
        const reach: LeaseLock = {
          read: async (signal) => (isUnreachable[who] === true ? Promise.reject(new Error('away')) : lock.read(signal)),
          write: async (...args) => (isUnreachable[who] === true ? Promise.reject(new Error('away')) : lock.write(...args)),
        };
        return new Candidate(leaseAbove(reach, database), name, clock);
      };
      const candidates = [candidate(0, 'a0'), candidate(1, 'b0')];
      const led = new Map<Candidate, number>();
      let newest = 0;
      const checkInvariants = (): void => {
        expect(candidates.filter((one) => one.mayAct(clock)).length).toBeLessThan(2);
        for (const one of candidates) {
          if (one.term === undefined) continue;
          // A leader's term never changes.
          const isRight = led.has(one) ? led.get(one) === one.term : one.term > newest;
          expect(isRight).toBe(true);
          led.set(one, one.term);
          newest = Math.max(newest, one.term);
        }
      };
      for (const [turn, { kind, who, term, ms }] of edits.entries()) {
        const renewal = `edit ${turn}`;
        if (kind === 'edit') lease.view = { ...lease.view, term: Math.min(term, lease.view.term), renewal };
        if (kind === 'delete') lease.view = { holder: null, term: 0, renewal, durationMs: 0 };
        isUnreachable[who] = kind === 'pause';
        for (let passed = 0; passed < ms; passed += 250) {
          await clock.advance(250);
          checkInvariants();
          // A candidate that lost the lease ends, and is restarted.
          for (const [index, one] of candidates.entries())
            if (one.isDone) candidates[index] = candidate(index, `${turn} ${passed} ${index}`);
        }
      }
      for (const one of candidates) one.stop.abort();
      await clock.advance(10_000);
    }),
    { numRuns: 60 },
  );
});
