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
  ['a request with any method that reached no replica goes to another', unreached, aRequest({ method: 'POST' }), 'another'],
  ['a lost idempotent request goes to another replica', lost, aRequest(), 'another'],
  ['PUT and DELETE are idempotent', lost, aRequest({ method: 'DELETE' }), 'another'],
  ['a sent POST is not retried', lost, aRequest({ method: 'POST' }), 'give-up'],
  ['a sent PATCH is not retried', raced, aRequest({ method: 'PATCH' }), 'give-up'],
  ['an unknown method is not idempotent', lost, aRequest({ method: 'X' }), 'give-up'],
  ['a sent POST is retried when the service allows it', lost, aRequest({ method: 'POST', retryUnsafe: true }), 'another'],
  ['a POST that the replica refused to process is retried at any replica', refused, aRequest({ method: 'POST' }), 'new-connection'],
  ['a request that is refused repeatedly fails', refused, aRequest({ timesSent: maxTimesSent }), 'give-up'],
  ['after the end of an idle connection a new one to any replica is used', raced, aRequest(), 'new-connection'],
  ['a request whose body was dropped is not retried', unreached, aRequest({ isReplayable: false }), 'give-up'],
  ['a request that was sent three times fails', lost, aRequest({ timesSent: maxTimesSent }), 'give-up'],
  ['failed connects do not count as sent', unreached, aRequest({ timesSent: maxTimesSent }), 'another'],
] as const)('%s', (_, failed, request, expected) => {
  expect(decideRetry(failed, request)).toBe(expected);
});
