import fc from 'fast-check';
import { expect, test } from 'vitest';
import { didYouMean, editDistance, notNamed } from './did-you-mean.ts';

const known = ['replicas', 'replica_policy', 'ports', 'tls', 'readiness_probe', 'timeout_seconds', 'run', 'service'];

test.each([
  ['replica', 'replicas'],
  ['replicsa', 'replicas'],
  ['REPLICAS', 'replicas'],
  ['port', 'ports'],
  ['prots', 'ports'],
  ['tsl', 'tls'],
  ['runn', 'run'],
  ['servce', 'service'],
  ['timeout', 'timeout_seconds'],
  ['probe', 'readiness_probe'],
  ['readyness_probe', 'readiness_probe'],
  ['zebra', undefined],
  ['x', undefined],
  ['', undefined],
  ['r'.repeat(1_000_000), undefined],
])('%s', (word, meant) => {
  expect(didYouMean(word, known)).toBe(meant);
});

test.each([
  ['', '', 0],
  ['a', '', 1],
  ['abc', 'acb', 1],
  ['kitten', 'sitting', 3],
  ['ca', 'abc', 3],
])('from %j to %j', (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
});

test('the distance is symmetric, zero for equal words, at most the longer length', () => {
  const word = fc.string({ maxLength: 8, unit: fc.constantFrom('a', 'b', 'c') });
  const property = fc.property(word, word, (a, b) => {
    const distance = editDistance(a, b);
    return distance === editDistance(b, a) && (distance === 0) === (a === b) && distance <= Math.max(a.length, b.length);
  });
  fc.assert(property);
});

test('an unknown name gets a suggestion or a list of the known names', () => {
  expect(notNamed('service', 'wbe', ['chat', 'web'])).toMatchObject({
    code: 'SVC_SERVICE_NOT_FOUND',
    message: "There is no service named 'wbe'.",
    hint: "Did you mean 'web'? Run: svc serve status",
  });
  expect(notNamed('cluster', 'dev', ['a', 'bb', 'ccc', 'dddddd', 'eeeeeee', 'ffffffff'])).toMatchObject({
    code: 'SVC_CLUSTER_NOT_FOUND',
    message: "There is no cluster named 'dev'.",
    hint: 'There are: a, bb, ccc, dddddd, eeeeeee, and more. Run: svc status',
  });
  expect(notNamed('cluster', 'dev', []).hint).toBe('Run: svc status');
});
