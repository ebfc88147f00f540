import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatedFiles } from './gen/files.ts';

/** Writes the generated files; with `--check` only says which are stale, and fails when one is. */
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
    // It does not exist yet, which is as stale as can be.
    return undefined;
  }
}

for (const path of stale) console.log(`${check ? 'stale' : 'written'}: ${path}`);
if (check && stale.length > 0) {
  console.error('Run: npm run gen');
  process.exitCode = 1;
}
