import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { envVar } from './env.ts';

/** Whether this program is the bundle for other machines, which is all JavaScript, rather than a checkout. */
export const isBundled = !import.meta.url.endsWith('.ts');

/** The folder of this program: a checkout or an unpacked bundle. In both, this module is two levels below it. */
const ownRoot = fileURLToPath(new URL('../../', import.meta.url));

/** Files that run as separate processes or threads, by their path below `src/` without extension. */
export const programEntries = [
  'balancer/main',
  'balancer/threads/thread',
  'controller/edge-proxy/health-checker',
  'controller/edge-proxy/main',
  'controller/leadership/keeper',
  'controller/main',
  'controller/service/main',
  'node/egress',
  'remote/kubernetes/forwarder',
] as const;
export type ProgramEntry = (typeof programEntries)[number];

const bundledFolder = 'src/bundle';

/** Path of an entry below the program's folder, in a checkout or in a bundle. */
export function entryPath(entry: ProgramEntry, inBundle: boolean): string {
  return inBundle ? `${bundledFolder}/${entry.replaceAll('/', '-')}.js` : `src/${entry}.ts`;
}

/**
 * File for a new process. Of a controller's processes, SVC_PROGRAM_ROOT is a link to the present version, so that one of
 * an earlier version starts the present one. The link leads to a bundle, or to a checkout where none could be made.
 */
export function programEntry(entry: ProgramEntry): string {
  const root = envVar('SVC_PROGRAM_ROOT');
  return root === undefined ? join(ownRoot, entryPath(entry, isBundled)) : entryBelow(root, entry);
}

/** File for a new process from the program in `root`, a bundle or a checkout. */
export function entryBelow(root: string, entry: ProgramEntry): string {
  const bundled = join(root, entryPath(entry, true));
  return existsSync(bundled) ? bundled : join(root, entryPath(entry, false));
}

/** File for a new thread. It has this process's version, because both share memory. */
export function threadEntry(entry: ProgramEntry): URL {
  return pathToFileURL(join(ownRoot, entryPath(entry, isBundled)));
}

/** Absolute path of a file of this program that other code reads or copies, such as `src/node/runner.sh`. */
export function programFile(name: string): string {
  return join(ownRoot, name);
}
