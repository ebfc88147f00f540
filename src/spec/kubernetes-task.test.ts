import { expect, test } from 'vitest';
import { parseText, problemsOf } from '../../test/support/task-text.ts';
import { unsupportedFeatures } from './unsupported.ts';

const unsupported = (text: string): readonly string[] => unsupportedFeatures(parseText(text)).map(({ field }) => field);

test("a task's volumes and pod settings are read", () => {
  const task = parseText(`
resources: {infra: k8s}
volumes: {/data/: models, /cache: {name: cache}}
config: {kubernetes: {provision_timeout: 60, pod_config: {spec: {priorityClassName: high}}}}
`);
  expect(task.volumes).toEqual({ '/data': 'models', '/cache': 'cache' });
  expect(task.providerConfig).toEqual({ kubernetes: { provisionTimeoutSeconds: 60, podConfig: { spec: { priorityClassName: 'high' } } } });
  expect(task.otherFields).toEqual([]);
});

test('volumes require Kubernetes in every alternative', () => {
  expect(unsupported('volumes: {/data: a}\nresources: {infra: k8s/east}\n')).toEqual([]);
  expect(unsupported('volumes: {/data: a}\n')).toEqual(['volumes']);
  expect(unsupported('volumes: {/data: a}\nresources: {any_of: [{infra: k8s}, {infra: aws}]}\n')).toEqual(['volumes']);
});

test('config sections for other clouds are unsupported', () => {
  expect(unsupported('config: {kubernetes: {provision_timeout: 10}, docker: {run_options: [a]}}\n')).toEqual(['config']);
});

test.each([
  ['volumes: {data: a}', /the folder of a volume must be an absolute path/],
  ['volumes: {/svc/x: a}', /\/svc is where svc keeps a replica's files/],
  ['volumes: {/a: b, /a/: c}', /two volumes have this folder/],
  ['volumes: {/a: {name: b, size: 10}}', /must be the name of a volume that exists/],
  ['volumes: {/a: My_Claim}', /is not a name of Kubernetes/],
  ['config: {kubernetes: {podconfig: {}}}', /unknown field 'podconfig'.*Did you mean 'pod_config'/],
  [
    'config: {kubernetes: {pod_config: {spec: {containers: [{command: [a]}]}}}}',
    /config\.kubernetes\.pod_config\.spec\.containers\[0\]: command/,
  ],
])('%s is rejected with the reason', (text, said) => {
  expect(problemsOf(text).join('\n')).toMatch(said);
});
