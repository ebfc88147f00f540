import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatedFiles } from './gen/files.ts';

/** Writes the generated files. With `--check`, only reports stale files and fails if there are any. */
const root = join(import.meta.dirname, '..');
const check = process.argv.includes('--check');
const stale: string[] = [];

for (const { path, render } of generatedFiles) {
  const text = await render();
  if (text === current(path)) continue;
  stale.push(path);
  if (check) continue;
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function current(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch {
    // A missing file counts as stale.
    return undefined;
  }
}

for (const path of stale) console.log(`${check ? 'stale' : 'written'}: ${path}`);
if (check && stale.length > 0) {
  console.error('Run: npm run gen');
  process.exitCode = 1;
}
