import { expect, test } from 'vitest';
import { decideRetry, maxTimesSent, type FailedAttempt, type RetriedRequest } from './retry-decision.ts';

const aRequest = (changes: Partial<RetriedRequest> = {}): RetriedRequest => ({
  method: 'GET',
  timesSent: 1,
  isReplayable: true,
  retryUnsafe: false,
  ...changes,
});
const unreached: FailedAttempt = { how: 'unreached', wasReused: false };
const refused: FailedAttempt = { how: 'refused', wasReused: false };
const lost: FailedAttempt = { how: 'lost', wasReused: false };
const raced: FailedAttempt = { how: 'lost', wasReused: true };

test.each([
  ['a request that never reached a replica goes to another, whatever its method', unreached, aRequest({ method: 'POST' }), 'elsewhere'],
  ['an idempotent request that was lost goes to another', lost, aRequest(), 'elsewhere'],
  ['PUT and DELETE are idempotent', lost, aRequest({ method: 'DELETE' }), 'elsewhere'],
  ['POST that was sent is never sent again', lost, aRequest({ method: 'POST' }), 'give-up'],
  ['PATCH that was sent is never sent again', raced, aRequest({ method: 'PATCH' }), 'give-up'],
  ['an unknown method is not taken for idempotent', lost, aRequest({ method: 'X' }), 'give-up'],
  ['POST is sent again when the service says so', lost, aRequest({ method: 'POST', retryUnsafe: true }), 'elsewhere'],
  ['POST that the replica has not begun to work on is sent again, to any', refused, aRequest({ method: 'POST' }), 'anew'],
  ['a request that is refused again and again comes to an end', refused, aRequest({ timesSent: maxTimesSent }), 'give-up'],
  ['the end of an idle connection leads to a new one, at any replica', raced, aRequest(), 'anew'],
  ['a body that was not kept cannot be sent again', unreached, aRequest({ isReplayable: false }), 'give-up'],
  ['after it was sent three times the client is told', lost, aRequest({ timesSent: maxTimesSent }), 'give-up'],
  ['connects that fail do not count as sent', unreached, aRequest({ timesSent: maxTimesSent }), 'elsewhere'],
] as const)('%s', (_, failed, request, expected) => {
  expect(decideRetry(failed, request)).toBe(expected);
});
