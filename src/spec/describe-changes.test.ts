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

test('a secret that is put into another field is shown by its name', () => {
  const source =
    'service: {readiness_probe: {path: /, headers: {Authorization: Bearer $TOKEN}}}\nresources: {ports: 80}\nrun: serve\nsecrets: {TOKEN: null}\n';
  const before = written(source, { TOKEN: 's3cret-1' });
  const after = written(source.replace('path: /', 'path: /health'), { TOKEN: 's3cret-2' });
  expect(describeChanges(before, after, false).join('\n')).not.toContain('s3cret');
  expect(describeChanges(before, after, false)).toContain('       Authorization: Bearer $TOKEN');
});

test('other working files are named', () => {
  expect(describeChanges(written(file('')), written(file('')), true)).toEqual(['+ (files of the working directory or of file_mounts)']);
  expect(describeChanges(written(file('')), written(file('')), false)).toEqual([]);
});
