import { accessSync, constants, globSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe } from 'vitest';

/** Programs that tests use and Debian's base image lacks, with the Debian package of each. */
const packages = {
  bwrap: 'bubblewrap',
  busybox: 'busybox-static',
  curl: 'curl',
  gcc: 'gcc',
  git: 'git',
  ip: 'iproute2',
  openssl: 'openssl',
  pasta: 'passt',
  perl: 'perl-base',
  postgres: 'postgresql',
  ps: 'procps',
  python3: 'python3',
  rsync: 'rsync',
  slirp4netns: 'slirp4netns',
  ssh: 'openssh-client',
  sshd: 'openssh-server',
  'systemd-analyze': 'systemd',
  wrk: 'wrk',
} as const;

/** A program that a test may need. */
export type Tool = keyof typeof packages;

/** Folders that are on no PATH, or on root's alone. */
const otherFolders: Partial<Record<Tool, readonly string[]>> = {
  postgres: globSync('/usr/lib/postgresql/*/bin').toSorted().toReversed(),
  sshd: ['/usr/sbin'],
};

/** Returns the path of the program; undefined where it is not installed. */
export function pathOf(tool: Tool): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...(otherFolders[tool] ?? [])];
  return folders.map((folder) => join(folder, tool)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns why tests that need these programs cannot run; undefined when they can. In CI it throws instead, because the
 * programs must be installed.
 */
export function whyMissing(...tools: readonly Tool[]): string | undefined {
  const missing = tools.filter((tool) => pathOf(tool) === undefined);
  if (missing.length === 0) return undefined;
  const reason = `${missing.join(' and ')} not found; run: apt-get install ${missing.map((tool) => packages[tool]).join(' ')}`;
  if (process.env['CI'] !== undefined) throw new Error(reason);
  return reason;
}

/**
 * Defines tests that need these programs: `needs('bwrap', () => { test(…) })`. Without them the tests are skipped, and
 * in CI the file fails. Test names always contain the programs, so that `.ci/run` can match a skipped test with its
 * later run.
 */
export function needs(tools: Tool | readonly Tool[], define: () => void): void {
  const all = typeof tools === 'string' ? [tools] : tools;
  if (all.length === 0) return define();
  describe.skipIf(whyMissing(...all) !== undefined)(`with ${all.join(' and ')}`, () => {
    define();
  });
}
