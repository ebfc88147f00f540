import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { readStatus, statusError } from '../../kubernetes/kube-errors.ts';
import { SvcError } from '../../shared/errors.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import { creationError } from './errors.ts';

const act = { verb: 'apply', path: '/api/v1/namespaces/default/pods/p', context: 'a' };

const meaningOf = (code: number, message: string): string => {
  const answer = statusError(act, readStatus(code, JSON.stringify({ kind: 'Status', code, message })));
  const error = creationError(answer, anOffer({ region: 'a' }));
  expect(error).toMatchObject({ message: expect.stringContaining(message) });
  if (error instanceof PlaceRefusal) return `${error.refusal} ${error.scope}`;
  return error instanceof SvcError ? error.code : '';
};

test.each([
  [403, 'pods "p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1', 'quota region'],
  [403, 'pods "p" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "x"', 'permission whole-region'],
  [403, 'pods "p" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', 'setup region'],
  [403, 'pods "p" is forbidden: no PriorityClass with name nope was found', 'setup region'],
  [403, 'pods "p" is forbidden: maximum cpu usage per Container is 1, but request is 2', 'setup region'],
  [403, 'pods "p" is forbidden: error looking up service account x/default: serviceaccount "default" not found', 'SVC_PLACE_FAILED'],
  [403, 'pods "p" is forbidden: error looking up service account x/mine: serviceaccount "mine" not found', 'setup region'],
  [400, 'admission webhook "policy.example.com" denied the request: no latest tags', 'setup region'],
  [500, 'admission webhook "policy.example.com" denied the request: busy', 'setup region'],
  [404, 'namespaces "x" not found', 'setup whole-region'],
  [422, 'Pod "p" is invalid: spec.containers[0].image: Invalid value', 'setup region'],
  [500, 'failed to create typed patch object (x/p; /v1, Kind=Pod): .spec.nope: field not declared in schema', 'setup region'],
  [429, 'Too many requests', 'throttled whole-region'],
  [500, 'etcdserver: request timed out', 'SVC_KUBERNETES'],
])('%i %s is %s', (code, message, meaning) => {
  expect(meaningOf(code, message)).toBe(meaning);
});

test('what is no answer of an API server is thrown as it is', () => {
  const error = new Error('x');
  expect(creationError(error, anOffer())).toBe(error);
});
