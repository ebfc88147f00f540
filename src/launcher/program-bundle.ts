import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createHash } from 'node:crypto';
import { codeFingerprint, codeVersion, fingerprintFile } from '../shared/version.ts';
import { entryPath, programEntries, programFile } from '../shared/program-files.ts';
import { randomHex } from '../shared/hex.ts';
import { systemClock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';

/** What a bundle copies unchanged from a checkout: files that programs on machines read, or run beside the code. */
const copied = ['package.json', 'src/node', 'catalog'] as const;

/** The list of a bundle's files, in the format of `sha256sum -c`. */
export const checksumFile = 'SHA256SUMS';

/**
 * Gives the controller and its processes a program to run: the bundle of this checkout. A bundled process needs half of
 * the memory of one that reads TypeScript (`bench/control-plane/README.md`). Returns a link to it, which a later version
 * changes, so that processes that live on start their successors from the newest program. Without space for a bundle
 * or a bundler for this computer, the program is the checkout itself. Never rejects.
 */
export async function prepareProgram(paths: HomePaths): Promise<string> {
  const root = await bundleFor(paths).catch(() => programFile('.'));
  const draft = `${paths.program}.${randomHex(8)}`;
  try {
    if (linkTarget(paths.program) === root) return paths.program;
    mkdirSync(dirname(draft), { recursive: true, mode: 0o700 });
    symlinkSync(root, draft);
    keepADay(linkTarget(paths.program));
    renameSync(draft, paths.program);
    return paths.program;
  } catch {
    // The controller must start on a full disk too: it can remove services.
    if (existsSync(draft)) rmSync(draft);
    return root;
  }
}

/** Processes that still run from a bundle load modules of it until the new controller has restarted them. */
function keepADay(bundle: string | undefined): void {
  const now = systemClock.now() / 1_000;
  if (bundle !== undefined && basename(bundle).startsWith(bundlePrefix) && existsSync(bundle)) utimesSync(bundle, now, now);
}

/** The bundle of this checkout in a home; made if it is missing. */
export async function bundleFor(paths: HomePaths): Promise<string> {
  const dir = join(dirname(paths.program), `${bundlePrefix}${codeVersion()}`);
  // Earlier versions made bundles there.
  if (!existsSync(dir)) removeOldBundles(join(paths.home, 'cache'), undefined);
  await makeBundle(dir, linkTarget(paths.program));
  return dir;
}

function linkTarget(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

/**
 * Makes `dir` a bundle of this checkout: all that a controller needs besides Node.js. Takes seconds. The folder appears
 * complete or not at all; an existing one is kept unless it is damaged, as after a loss of power. Removes others beside it
 * that are older than a day, except `used`, from which processes may still load modules.
 */
export async function makeBundle(dir: string, used?: string): Promise<void> {
  if (isWhole(dir)) return;
  const code = codeFingerprint(programFile('.'));
  removeOldBundles(dirname(dir), used);
  const draft = `${dir}.${randomHex(8)}`;
  try {
    await compile(draft);
    if (codeFingerprint(programFile('.')) !== code) throw new Error('the code was changed meanwhile');
    for (const name of copied)
      cpSync(programFile(name), join(draft, name), { recursive: true, filter: (path) => !path.endsWith('.test.ts') });
    writeFileSync(join(draft, fingerprintFile), `${code}\n`);
    writeFileSync(join(draft, checksumFile), checksums(draft));
    mkdirSync(dirname(dir), { recursive: true, mode: 0o700 });
    // Another process may have made the same bundle meanwhile.
    if (isWhole(dir)) return;
    rmSync(dir, { recursive: true, force: true });
    renameSync(draft, dir);
  } catch (error) {
    if (!isWhole(dir)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Removes bundles that are older than a day, except `used`: a new one takes only two seconds. */
function removeOldBundles(folder: string, used: string | undefined): void {
  if (!existsSync(folder)) return;
  const old = systemClock.now() - keptBundleMs;
  for (const name of readdirSync(folder).filter((entry) => entry.startsWith(bundlePrefix))) {
    const path = join(folder, name);
    // Another process may have removed its draft meanwhile.
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: old };
    if (path !== used && mtimeMs < old) rmSync(path, { recursive: true, force: true });
  }
}

/** Prefix of a bundle's folder, before the code version. */
export const bundlePrefix = 'bundle-';

const keptBundleMs = 86_400_000;

async function compile(dir: string): Promise<void> {
  const { build } = await import('rolldown');
  const entries = programEntries.map((entry) => [basename(entryPath(entry, true), '.js'), programFile(entryPath(entry, false))]);
  await build({
    input: Object.fromEntries(entries),
    platform: 'node',
    logLevel: 'silent',
    // Optional: packages load them only if a user has installed them separately.
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

function isWhole(dir: string): boolean {
  try {
    return readFileSync(join(dir, checksumFile), 'utf8') === checksums(dir);
  } catch {
    return false;
  }
}

function checksums(dir: string): string {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== checksumFile);
  const lines = files.map(({ parentPath, name }) => {
    const path = join(parentPath, name);
    return `${createHash('sha256').update(readFileSync(path)).digest('hex')}  ${path.slice(dir.length + 1)}\n`;
  });
  return lines.toSorted().join('');
}
