import { expect, test } from 'vitest';
import { setPolicyFields } from './set-policy-fields.ts';

const file = `
service:
  readiness_probe: /
  replica_policy:
    min_replicas: 1 # never fewer
    max_replicas: 3
`;

test('fields are replaced and added, and comments stay', () => {
  expect(setPolicyFields(file, ['max_replicas=20', 'target_qps_per_replica={A10G: 2}', 'spot_placer=hedge'])).toBe(
    `
service:
  readiness_probe: /
  replica_policy:
    min_replicas: 1 # never fewer
    max_replicas: 20
    target_qps_per_replica: { A10G: 2 }
    spot_placer: hedge
`.trimStart(),
  );
});

test('an empty value removes the field', () => {
  expect(setPolicyFields('service: {replica_policy: {min_replicas: 1, max_replicas: 3}}', ['max_replicas=', 'num_overprovision='])).toBe(
    'service: { replica_policy: { min_replicas: 1 } }\n',
  );
});

test('a fixed number of replicas becomes the minimum of the policy', () => {
  expect(setPolicyFields('service: {replicas: 2}\n', ['max_replicas=4'])).toBe(
    'service: { replica_policy: { min_replicas: 2, max_replicas: 4 } }\n',
  );
});

test('without assignments, and in a file that cannot be parsed, nothing changes', () => {
  expect(setPolicyFields(file, [])).toBe(file);
  expect(setPolicyFields('service: {', ['max_replicas=4'])).toBe('service: {');
});

test('a word without a field is refused with an example', () => {
  expect(() => setPolicyFields(file, ['=3'])).toThrow("'=3' does not set a field of replica_policy.");
});
