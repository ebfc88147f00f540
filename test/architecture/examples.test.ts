import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { expect, test } from 'vitest';
import type { Task } from '../../src/domain/task.ts';
import { parseTask } from '../../src/spec/parse-task.ts';
import { pages } from './markdown.ts';

/** Values that users must supply. */
const given = { envs: { AUTH_TOKEN: 'key' }, secrets: { HF_TOKEN: 'key' } };
const schemaLine = '# yaml-language-server: $schema=../../schemas/task.schema.json\n';

const files = globSync('examples/*/service.yaml').toSorted();

const parseExample = (file: string): Task => {
  const source = readFileSync(file, 'utf8');
  const required = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).filter(([name]) => source.includes(`${name}: null`)));
  return parseTask({ source, file: resolve(file), envs: required(given.envs), secrets: required(given.secrets) });
};

test('all promised examples exist', () => {
  const names = files.map((file) => file.split('/')[1]);
  expect(names).toEqual(['auth', 'autoscaling', 'grpc', 'hello', 'kubernetes', 'openai-like', 'spot', 'ssh', 'tgi', 'tls', 'vllm']);
});

test.for(files)('%s parses, begins with the schema line, and its README deploys it', (file) => {
  expect(readFileSync(file, 'utf8').startsWith(schemaLine)).toBe(true);
  const task = parseExample(file);
  expect(task.service?.replicaPort).toBeGreaterThan(0);
  expect(task.run).toBeDefined();
  expect(task.otherFields).toEqual([]);
  expect(task.workdir?.kind === 'path' ? task.workdir.path : resolve(dirname(file))).toBe(resolve(dirname(file)));
  expect(readFileSync(`${dirname(file)}/README.md`, 'utf8')).toContain(`./svc serve up ${file}`);
  expect(readFileSync('README.md', 'utf8')).toContain(`(${dirname(file)})`);
});

test('the schema that editors are pointed to exists', () => {
  expect(existsSync('schemas/task.schema.json')).toBe(true);
});

test('every service file in the docs parses', () => {
  const shown = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].flatMap(([, source = '']) =>
      /^service:/m.test(source) && /^run:/m.test(source) ? [{ path, source }] : [],
    ),
  );
  expect(shown.length).toBeGreaterThan(1);
  for (const { path, source } of shown) expect(() => parseTask({ source, file: resolve(path), envs: {}, secrets: {} })).not.toThrow();
});
