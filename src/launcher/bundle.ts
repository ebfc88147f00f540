import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import { codeFingerprint, fingerprintFile } from '../shared/code-version.ts';
import { entryPath, programEntries, programFile } from '../shared/program-files.ts';
import { randomHex } from '../shared/random-hex.ts';

/** What of a checkout is copied into a bundle as it is: what programs on machines read or run beside the code. */
const copied = ['package.json', 'src/node', 'catalog'] as const;

/** List of what a bundle holds, as `sha256sum -c` reads it. */
export const checksumFile = 'SHA256SUMS';

/**
 * Makes the folder `dir` a bundle of this checkout: everything that a controller runs with nothing but Node.js, no packages among it. Takes some
 * seconds; appears as a whole or not at all, and one that is there is left as it is.
 */
export async function makeBundle(dir: string): Promise<void> {
  if (existsSync(dir)) return;
  removeOldBundles(dirname(dir));
  const draft = `${dir}.${randomHex(8)}`;
  try {
    await compile(draft);
    for (const name of copied)
      cpSync(programFile(name), join(draft, name), { recursive: true, filter: (path) => !path.endsWith('.test.ts') });
    writeFileSync(join(draft, fingerprintFile), `${codeFingerprint(programFile('.'))}\n`);
    writeFileSync(join(draft, checksumFile), checksums(draft));
    mkdirSync(dirname(dir), { recursive: true, mode: 0o700 });
    // Of two that make it at the same moment one comes first, and both have made the same.
    if (!existsSync(dir)) renameSync(draft, dir);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** A bundle takes two seconds to make: those of programs that nobody uses any more need not stay. */
function removeOldBundles(folder: string): void {
  if (!existsSync(folder)) return;
  const old = systemClock.now() - keptBundleMs;
  for (const name of readdirSync(folder).filter((entry) => entry.startsWith(bundlePrefix))) {
    if (statSync(join(folder, name)).mtimeMs < old) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** Where a bundle is kept is called so, and the fingerprint of its program. */
export const bundlePrefix = 'bundle-';

const keptBundleMs = 86_400_000;

async function compile(dir: string): Promise<void> {
  const { build } = await import('rolldown');
  const entries = programEntries.map((entry) => [basename(entryPath(entry, true), '.js'), programFile(entryPath(entry, false))]);
  await build({
    input: Object.fromEntries(entries),
    platform: 'node',
    logLevel: 'silent',
    // What a package loads only where its user has installed more than the package asks for.
    external: ['aws-crt', '@aws-sdk/signature-v4-crt', 'pg-native'],
    output: {
      dir: join(dir, dirname(entryPath('controller/main', true))),
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'chunk-[name]-[hash].js',
      minify: 'dce-only',
    },
  });
}

function checksums(dir: string): string {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const lines = files.map(({ parentPath, name }) => {
    const path = join(parentPath, name);
    return `${createHash('sha256').update(readFileSync(path)).digest('hex')}  ${path.slice(dir.length + 1)}\n`;
  });
  return lines.toSorted().join('');
}
