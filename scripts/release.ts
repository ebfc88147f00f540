import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { argv, exit } from 'node:process';

const kinds = ['added', 'changed', 'fixed', 'removed'] as const;

/** One user-visible change, as described in `changes/<slug>.md`. */
export interface Change {
  readonly kind: (typeof kinds)[number];
  readonly sentence: string;
}

/** Parses a file of changes/: a `kind:` line, a blank line, a paragraph. For an invalid file, its fault as a string. */
export function parseChange(text: string): Change | string {
  const [head = '', ...paragraphs] = text.trim().split(/\n\s*\n/);
  const word = /^kind: (\w+)$/.exec(head)?.[1];
  if (word === undefined) return 'the first line must be `kind: added|changed|fixed|removed`, followed by a blank line';
  const kind = kinds.find((known) => known === word);
  if (kind === undefined) return `the kind '${word}' is none of ${kinds.join(', ')}`;
  const [sentence] = paragraphs;
  if (sentence === undefined || paragraphs.length > 1) return 'after the kind comes exactly one paragraph for users';
  if (!sentence.endsWith('.')) return 'the sentence must end with a full stop';
  return { kind, sentence: sentence.replaceAll(/\s*\n\s*/g, ' ') };
}

/** The section of CHANGELOG.md for a release: changes by kind, in the order of `kinds`. */
export function changelogSection(version: string, date: string, changes: readonly Change[]): string {
  const groups = kinds.flatMap((kind) => {
    const lines = changes.filter((change) => change.kind === kind).map(({ sentence }) => `- ${sentence}`);
    const title = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
    return lines.length === 0 ? [] : [`### ${title}\n\n${lines.join('\n')}`];
  });
  return [`## ${version} (${date})`, ...groups].join('\n\n');
}

/** The changelog with a section inserted above the earlier ones. */
export function withSection(changelog: string, section: string): string {
  const firstRelease = changelog.search(/^## /m);
  if (firstRelease < 0) return `${changelog.trimEnd()}\n\n${section}\n`;
  return `${changelog.slice(0, firstRelease)}${section}\n\n${changelog.slice(firstRelease)}`;
}

function release(version: string): void {
  const files = globSync('changes/*.md').toSorted();
  const changes = files.map((file) => {
    const change = parseChange(readFileSync(file, 'utf8'));
    if (typeof change === 'string') throw new Error(`${file}: ${change}`);
    return change;
  });
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync('CHANGELOG.md', withSection(readFileSync('CHANGELOG.md', 'utf8'), changelogSection(version, date, changes)));
  // In both files, the package's name is on the line above its version.
  for (const file of ['package.json', 'package-lock.json']) {
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/("name": "svc",\n\s*"version": ")[^"]+/g, `$1${version}`));
  }
  for (const file of files) rmSync(file);
  console.log(`${version}: ${changes.length} changes. Look at the diff, commit it, and tag it v${version}.`);
}

if (import.meta.main) {
  const [, , version = ''] = argv;
  if (!/^\d+\.\d+\.\d+$/.test(version)) {
    console.error('usage: npm run release -- MAJOR.MINOR.PATCH');
    exit(2);
  }
  release(version);
}
