import { expect, test } from 'vitest';
import { describeChanges } from './describe-changes.ts';
import { parseTask } from './parse-task.ts';

function written(source: string, secrets: Readonly<Record<string, string>> = {}, envs: Readonly<Record<string, string>> = {}) {
  return { source, task: parseTask({ source, file: '/a/s.yaml', envs, secrets }) };
}

const file = (more: string): string => `service: {readiness_probe: /, replicas: 2}\nresources: {ports: 80}\nrun: serve\n${more}`;

test('changed fields are shown line by line, as the file has them', () => {
  const lines = describeChanges(written(file('')), written(file('').replace('replicas: 2', 'replicas: 3')), false);
  expect(lines).toEqual([' service:', '   readiness_probe: /', '-  replicas: 2', '+  replicas: 3', ' resources:', '   ports: 80']);
});

test('values of secrets are never shown, only that they changed', () => {
  const declared = file('secrets: {TOKEN: null}\nenvs: {MODEL: small}\n');
  const before = written(declared, { TOKEN: 's3cret-1' });
  const lines = describeChanges(before, written(declared, { TOKEN: 's3cret-2' }, { MODEL: 'large' }), false);
  expect(lines.filter((line) => !line.startsWith(' '))).toEqual([
    '-  MODEL: small',
    '+  MODEL: large',
    '-  TOKEN: (hidden)',
    '+  TOKEN: (hidden, changed)',
  ]);
  expect(lines.join('\n')).not.toContain('s3cret');
});

test('other working files are named', () => {
  expect(describeChanges(written(file('')), written(file('')), true)).toEqual(['+ (files of the working directory or of file_mounts)']);
  expect(describeChanges(written(file('')), written(file('')), false)).toEqual([]);
});
