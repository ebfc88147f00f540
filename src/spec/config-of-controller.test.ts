import { expect, test } from 'vitest';
import { configOfController } from './config-of-controller.ts';
import { parseConfig } from './load-config.ts';

const environment = { providers: ['aws', 'kubernetes'], contexts: ['prod', 'staging'] } as const;

test("a cluster's controller gets its providers, but no settings of its own deployment", () => {
  const text = configOfController(
    'serve: {controller: {high_availability: true, autostop: 5}}\nlocal: {regions: [one, two]}\naws: {profile: lab}\n',
    environment,
  );
  const config = parseConfig(text, 'config.yaml');
  expect(config).toMatchObject({
    serve: { controller: { highAvailability: false, autostop: undefined } },
    local: { regions: [{ name: 'local' }] },
    aws: { profile: 'lab' },
    allowedClouds: ['aws', 'kubernetes'],
  });
});

test('the database address, which holds a password, is left out', () => {
  expect(configOfController('serve: {controller: {database: "postgres://svc:hunter2@db/svc"}}', environment)).not.toContain('hunter2');
});

test('contexts without access are left out', () => {
  expect(configOfController('kubernetes: {allowed_contexts: all}', environment)).toContain(
    'allowed_contexts:\n    - prod\n    - staging\n',
  );
  expect(configOfController('', environment)).not.toContain('allowed_contexts');
});

test('without a file the result is valid and the same each time', () => {
  const text = configOfController('', environment);
  expect(text).toBe(configOfController('', environment));
  expect(text).toContain('allowed_clouds:\n  - aws\n  - kubernetes\n');
});
