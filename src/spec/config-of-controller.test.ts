import { expect, test } from 'vitest';
import { configOfController } from './config-of-controller.ts';
import { parseConfig } from './load-config.ts';

const surroundings = { places: ['aws', 'kubernetes'], contexts: ['prod', 'staging'] } as const;

test('a controller in a cluster is told of the places it may use, and nothing of how it is brought up', () => {
  const text = configOfController(
    'serve: {controller: {high_availability: true, autostop: 5}}\nlocal: {regions: [one, two]}\naws: {profile: lab}\n',
    surroundings,
  );
  const config = parseConfig(text, 'config.yaml');
  expect(config).toMatchObject({
    serve: { controller: { highAvailability: false, autostop: undefined } },
    local: { regions: [{ name: 'local' }] },
    aws: { profile: 'lab' },
    allowedClouds: ['aws', 'kubernetes'],
  });
});

test('it never learns the address of the database from the file, which has a password', () => {
  expect(configOfController('serve: {controller: {database: "postgres://svc:hunter2@db/svc"}}', surroundings)).not.toContain('hunter2');
});

test('contexts that it has no access to are left out', () => {
  expect(configOfController('kubernetes: {allowed_contexts: all}', surroundings)).toContain(
    'allowed_contexts:\n    - prod\n    - staging\n',
  );
  expect(configOfController('', surroundings)).not.toContain('allowed_contexts');
});

test('without a file there is one all the same, and the same each time', () => {
  const text = configOfController('', surroundings);
  expect(text).toBe(configOfController('', surroundings));
  expect(text).toContain('allowed_clouds:\n  - aws\n  - kubernetes\n');
});
