import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { readStatus, statusError } from '../../kubernetes/kube-errors.ts';
import { SvcError } from '../../shared/errors.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import { creationError } from './errors.ts';

const act = { verb: 'apply', path: '/api/v1/namespaces/default/pods/p', context: 'a' };

const meaningOf = (code: number, message: string): string => {
  const answer = statusError(act, readStatus(code, JSON.stringify({ kind: 'Status', code, message })));
  const error = creationError(answer, anOffer({ region: 'a' }));
  expect(error).toMatchObject({ message: expect.stringContaining(message) });
  if (error instanceof ProviderRefusal) return `${error.refusal} ${error.scope}`;
  return error instanceof SvcError ? error.code : '';
};

test.each([
  [403, 'pods "p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1', 'quota namespace'],
  [
    403,
    'pods "p" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8',
    'quota namespace',
  ],
  [403, 'pods "p" is forbidden: failed quota: few: must specify limits.cpu', 'quota namespace'],
  [403, 'pods "p" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]', 'quota namespace'],
  [403, 'pods "p" is forbidden: status unknown for quota: few, resources: pods', 'quota namespace'],
  [409, 'Operation cannot be fulfilled on resourcequotas "few": the object has been modified', 'throttled whole-region'],
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
])('status %i with message %s becomes %s', (code, message, meaning) => {
  expect(meaningOf(code, message)).toBe(meaning);
});

test('an error that is not from an API server is thrown unchanged', () => {
  const error = new Error('x');
  expect(creationError(error, anOffer())).toBe(error);
});

test.each([
  ['failed quota: few: must specify limits.cpu for: main; limits.memory for: main', 'limits: {cpu: 2, memory: 4Gi}'],
  ['failed quota: few: must specify requests.ephemeral-storage', 'have the quota of the namespace raised'],
  ['violates PodSecurity "restricted:latest": unrestricted capabilities, runAsNonRoot != true', 'capabilities: {drop: [ALL]}'],
  ['exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1', 'have the quota of the namespace raised'],
])('the hint of a refusal "%s" names the remedy', (message, remedy) => {
  const answer = statusError(act, readStatus(403, JSON.stringify({ kind: 'Status', code: 403, message })));
  expect(creationError(answer, anOffer({ region: 'a' }))).toMatchObject({ hint: expect.stringContaining(remedy) });
});
