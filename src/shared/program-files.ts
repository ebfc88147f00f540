import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { envVar } from './env.ts';

/** Whether this is the bundle that is put on machines rather than a checkout: there everything is JavaScript. */
export const isBundled = !import.meta.url.endsWith('.ts');

/** The folder that holds this very program: a checkout, or an unpacked bundle, whose files lie two levels below it as this one does in a checkout. */
const ownRoot = fileURLToPath(new URL('../../', import.meta.url));

/** Files that run as processes or threads of their own, by their place below `src/` without the ending. */
export const programEntries = [
  'balancer/main',
  'balancer/threads/thread',
  'controller/balancer-host/main',
  'controller/leadership/keeper',
  'controller/main',
  'controller/service/main',
  'node/egress',
  'remote/kubernetes/forwarder',
] as const;
export type ProgramEntry = (typeof programEntries)[number];

/** Folder of a bundle in which its code lies. */
const bundledFolder = 'src/bundle';

/** Where an entry is below the folder of the program, in a checkout or in a bundle. */
export function entryPath(entry: ProgramEntry, inBundle: boolean): string {
  return inBundle ? `${bundledFolder}/${entry.replaceAll('/', '-')}.js` : `src/${entry}.ts`;
}

/**
 * What to run for a new process. Where SVC_PROGRAM_ROOT names the program by a link, as on machines to which newer versions are brought, that is
 * the version to which the link leads by now.
 */
export function programEntry(entry: ProgramEntry): string {
  return join(envVar('SVC_PROGRAM_ROOT') ?? ownRoot, entryPath(entry, isBundled));
}

/** What to run for a new thread: of the version of this process, with which it shares memory. */
export function threadEntry(entry: ProgramEntry): URL {
  return pathToFileURL(join(ownRoot, entryPath(entry, isBundled)));
}

/** Absolute path of a file of this program that is read or copied, such as `src/node/runner.sh`. */
export function programFile(name: string): string {
  return join(ownRoot, name);
}
