import { expect, test } from 'vitest';
import { refusalKinds, refusalScopes, type RefusalKind } from '../domain/placement.ts';
import type { ErrorCode } from '../shared/error-codes.ts';
import { SvcError } from '../shared/errors.ts';
import { PlaceRefusal } from './place-refusal.ts';

const shown: readonly (readonly [kind: RefusalKind, code: ErrorCode])[] = [
  ['capacity', 'SVC_CAPACITY'],
  ['quota', 'SVC_QUOTA'],
  ['price', 'SVC_PRICE'],
  ['permission', 'SVC_DENIED'],
  ['throttled', 'SVC_THROTTLED'],
  ['setup', 'SVC_REFUSED_THERE'],
  ['unsupported', 'SVC_UNSUPPORTED_THERE'],
];

test.for(shown)('users see a refusal for %s as %s, with the place’s own sentence', ([kind, code]) => {
  const refusal = new PlaceRefusal(kind, 'zone', 'nimbus gives no n1 in east-a: none left (NONE_LEFT)');
  expect(refusal).toBeInstanceOf(SvcError);
  expect(refusal).toMatchObject({ code, refusal: kind, scope: 'zone', message: 'nimbus gives no n1 in east-a: none left (NONE_LEFT)' });
});

test('every kind has a code of its own, whatever it is about, and a hint even where the place gives none', () => {
  expect(shown.map(([kind]) => kind).toSorted()).toEqual([...refusalKinds].toSorted());
  const refusals = refusalKinds.flatMap((kind) => refusalScopes.map((scope) => new PlaceRefusal(kind, scope, 'no')));
  expect(new Set(refusals.map(({ code }) => code)).size).toBe(refusalKinds.length);
  expect(refusals.filter(({ hint }) => hint === '')).toEqual([]);
});

test('a place may say what to do, and what was behind it', () => {
  const cause = new Error('VcpuLimitExceeded');
  const refusal = new PlaceRefusal('quota', 'region', 'no', { hint: 'Ask for more.', cause });
  expect([refusal.hint, refusal.cause]).toEqual(['Ask for more.', cause]);
});
