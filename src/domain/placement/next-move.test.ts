import { expect, test } from 'vitest';
import { aPlaceableOffer } from '../../../test/support/builders.ts';
import { kindOf, type Candidate } from '../placement.ts';
import { mostAsksOfLaunch, nextMove, patienceMs, type PendingAsk, type SearchView } from './next-move.ts';

const at = (region: string, hourlyUsd: number): Candidate => ({ offer: aPlaceableOffer({ region, hourlyUsd }), alternative: 0 });
const [cheap, middle, dear, dearest] = [at('cheap', 1), at('middle', 2), at('dear', 3), at('dearest', 4)];
const all = [cheap, middle, dear, dearest];

const asked = (candidate: Candidate, launch: string, since = 0): PendingAsk => ({ launch, kind: kindOf(candidate.offer), at: since });

function move(view: Partial<SearchView>, ranked: readonly Candidate[] = all) {
  const next = nextMove(ranked, 'me', { pending: [], given: new Map(), reopening: [], preference: { order: 'any' }, now: 0, ...view });
  return next.type === 'ask' ? `${next.candidate.offer.region}: ${next.why}` : next.type === 'wait' ? `wait ${next.until}` : next.type;
}

test('the best candidate is asked first; without candidates there is no move', () => {
  expect([move({}), move({}, [])]).toEqual(['cheap: best', 'none']);
});

test("a launch waits a limited time for another launch's ask of a better candidate", () => {
  const pending = [asked(cheap, 'other')];
  expect(move({ pending, now: 1_000 })).toBe(`wait ${patienceMs}`);
  expect(move({ pending, now: patienceMs })).toBe('middle: better-busy');
});

test('among equal prices no launch waits', () => {
  const twin = at('twin', 1);
  expect(move({ pending: [asked(cheap, 'other')] }, [cheap, twin])).toBe('twin: better-busy');
});

test('after a kind returned machines, twice as many launches may ask it', () => {
  const given = new Map([[kindOf(cheap.offer), 1]]);
  expect(move({ given, pending: [asked(cheap, 'a')] })).toBe('cheap: best');
  expect(move({ given, pending: [asked(cheap, 'a'), asked(cheap, 'b')] })).toBe(`wait ${patienceMs}`);
});

test('while an answer is slow, the launch also asks the next candidate', () => {
  expect(move({ pending: [asked(cheap, 'me')], now: 1_000 })).toBe(`wait ${patienceMs}`);
  expect(move({ pending: [asked(cheap, 'me')], now: patienceMs })).toBe('middle: slow-answer');
});

test('the search asks as many further candidates as there are slow ones', () => {
  const slow = [asked(cheap, 'a'), asked(middle, 'b')];
  const now = patienceMs + 1;
  expect(move({ pending: [...slow, asked(dear, 'c', now)], now })).toBe('dearest: better-busy');
  const further = at('further', 5);
  expect(move({ pending: [...slow, asked(dear, 'c', now), asked(dearest, 'd', now)], now }, [...all, further])).toBe(
    `wait ${now + patienceMs}`,
  );
});

test('one launch has a limited number of concurrent asks', () => {
  const many = Array.from({ length: mostAsksOfLaunch + 1 }, (_, index) => at(`r${index}`, index));
  const pending = many.slice(0, mostAsksOfLaunch).map((one) => asked(one, 'me'));
  expect(move({ pending, now: 1e6 }, many)).toBe('wait undefined');
});

test('when all candidates are asked and slow, a few more launches join', () => {
  const others = (count: number, since = 0) => Array.from({ length: count }, (_, index) => asked(cheap, `l${index}`, since));
  expect(move({ pending: others(1), now: 1_000 }, [cheap])).toBe(`wait ${patienceMs}`);
  expect(move({ pending: others(3), now: 1e6 }, [cheap])).toBe('cheap: better-busy');
  expect(move({ pending: others(4), now: 1e6 }, [cheap])).toBe('wait undefined');
});

test('without other candidates, a launch waits for its own pending asks', () => {
  expect(move({ pending: [asked(cheap, 'me')], now: 1e6 }, [])).toBe('wait undefined');
});

test('a launch waits for a throttled better candidate when its backoff is short', () => {
  expect(move({ reopening: [{ candidate: cheap, at: 2_000 }] }, [middle])).toBe('wait 2000');
  expect(move({ reopening: [{ candidate: cheap, at: 20_000 }] }, [middle])).toBe('middle: best');
  expect(move({ reopening: [{ candidate: dear, at: 2_000 }] }, [middle])).toBe('middle: best');
});

test('with ordered alternatives the earlier one is better, regardless of its price', () => {
  const preferred = { ...dear, alternative: 0 };
  const second = { ...cheap, alternative: 1 };
  const pending = [asked(preferred, 'other')];
  expect(move({ preference: { order: 'ordered' }, pending }, [preferred, second])).toBe(`wait ${patienceMs}`);
  expect(move({ preference: { order: 'any' }, pending }, [second, preferred])).toBe('cheap: best');
});
