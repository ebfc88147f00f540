import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseChange } from '../../scripts/release.ts';

test('every file of changes/ has a kind and one sentence for users', () => {
  const files = globSync('changes/*.md');
  const problems = files.flatMap((path) => {
    const change = parseChange(readFileSync(path, 'utf8'));
    return typeof change === 'string' ? [`${path}: ${change}`] : [];
  });
  expect(problems).toEqual([]);
});

test('a change without a kind, with an unknown kind, or with several paragraphs is refused', () => {
  expect(parseChange('A sentence.')).toMatch(/kind:/);
  expect(parseChange('kind: improved\n\nA sentence.')).toMatch(/added, changed, fixed, removed/);
  expect(parseChange('kind: added\n\nOne.\n\nTwo.')).toMatch(/one paragraph/);
  expect(parseChange('kind: fixed\n\nThe thing works again.\n')).toEqual({ kind: 'fixed', sentence: 'The thing works again.' });
});
