import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { changelogSection, parseChange, withSection } from '../../scripts/release.ts';

const withVersion = z.object({ version: z.string() });
const versionIn = (path: string): string => withVersion.parse(JSON.parse(readFileSync(path, 'utf8'))).version;

test('every file of changes/ has a kind and one paragraph for users', () => {
  const problems = globSync('changes/*').flatMap((path) => {
    if (!/^changes\/[a-z0-9-]+\.md$/.test(path)) return [`${path}: name it <slug>.md, in kebab-case`];
    const change = parseChange(readFileSync(path, 'utf8'));
    return typeof change === 'string' ? [`${path}: ${change}`] : [];
  });
  expect(problems).toEqual([]);
});

test('package.json, the lock file and the newest changelog release have the same version', () => {
  const released = /^## (\S+)/m.exec(readFileSync('CHANGELOG.md', 'utf8'))?.[1];
  const version = versionIn('package.json');
  expect([versionIn('package-lock.json'), released ?? version]).toEqual([version, version]);
});

test.for([
  ['A sentence.', 'kind:'],
  ['kind: improved\n\nA sentence.', 'added, changed, fixed, removed'],
  ['kind: added\n\nOne.\n\nTwo.', 'one paragraph'],
  ['kind: added\n', 'one paragraph'],
  ['kind: added\n\nNo full stop', 'full stop'],
])('the change %j is refused: %s', ([text = '', problem = '']) => {
  expect(parseChange(text)).toContain(problem);
});

test('a paragraph over several lines becomes one line', () => {
  expect(parseChange('kind: fixed\n\nThe thing\n  works again.\n')).toEqual({ kind: 'fixed', sentence: 'The thing works again.' });
});

test('a new release is inserted above earlier ones, with changes grouped by kind', () => {
  const section = changelogSection('0.2.0', '2030-01-01', [
    { kind: 'fixed', sentence: 'B.' },
    { kind: 'added', sentence: 'A.' },
    { kind: 'fixed', sentence: 'C.' },
  ]);
  expect(section).toBe('## 0.2.0 (2030-01-01)\n\n### Added\n\n- A.\n\n### Fixed\n\n- B.\n- C.');
  expect(withSection('# Changelog\n\nText.\n', section)).toBe(`# Changelog\n\nText.\n\n${section}\n`);
  expect(withSection('# Changelog\n\n## 0.1.0 (x)\n', section)).toBe(`# Changelog\n\n${section}\n\n## 0.1.0 (x)\n`);
});
