import { expect, test } from 'vitest';
import { refusalKinds, refusalScopes, type RefusalKind } from '../domain/placement.ts';
import type { ErrorCode } from '../shared/error-codes.ts';
import { SvcError } from '../shared/errors.ts';
import { ProviderRefusal } from './provider-refusal.ts';

const shown: readonly (readonly [kind: RefusalKind, code: ErrorCode])[] = [
  ['capacity', 'SVC_CAPACITY'],
  ['quota', 'SVC_QUOTA'],
  ['price', 'SVC_PRICE'],
  ['permission', 'SVC_DENIED'],
  ['throttled', 'SVC_THROTTLED'],
  ['provider-error', 'SVC_PLACE_FAILED'],
  ['setup', 'SVC_REFUSED_THERE'],
  ['unsupported', 'SVC_UNSUPPORTED_THERE'],
  ['failed-launch', 'SVC_MACHINE_LOST'],
];

test.for(shown)("a refusal for %s has the code %s and the provider's sentence", ([kind, code]) => {
  const refusal = new ProviderRefusal(kind, 'zone', 'nimbus gives no n1 in east-a: none left (NONE_LEFT)');
  expect(refusal).toBeInstanceOf(SvcError);
  expect(refusal).toMatchObject({ code, refusal: kind, scope: 'zone', message: 'nimbus gives no n1 in east-a: none left (NONE_LEFT)' });
});

test('every kind has its own code in every scope, and a default hint', () => {
  expect(shown.map(([kind]) => kind).toSorted()).toEqual([...refusalKinds].toSorted());
  const refusals = refusalKinds.flatMap((kind) => refusalScopes.map((scope) => new ProviderRefusal(kind, scope, 'no')));
  expect(new Set(refusals.map(({ code }) => code)).size).toBe(refusalKinds.length);
  expect(refusals.filter(({ hint }) => hint === '')).toEqual([]);
});

test('a refusal can carry a hint and a cause', () => {
  const cause = new Error('VcpuLimitExceeded');
  const refusal = new ProviderRefusal('quota', 'region', 'no', { hint: 'Ask for more.', cause });
  expect([refusal.hint, refusal.cause]).toEqual(['Ask for more.', cause]);
});
