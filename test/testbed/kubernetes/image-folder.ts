import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Settings of an image, as in its JSON. */
export interface ImageSettings {
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  /** `NAME=value`. */
  readonly Env?: readonly string[];
  readonly User?: string;
  readonly WorkingDir?: string;
}

/**
 * Makes an image archive (in the format of `docker save`) of a folder, for `loadImage`. The folder is its only layer;
 * root owns every file.
 */
export async function imageOfFolder(archive: string, name: string, folder: string, settings: ImageSettings = {}): Promise<void> {
  const library = new URL('image-archive.sh', import.meta.url).pathname;
  // The second word is the script's name in its messages.
  await run('bash', [
    '-euc',
    '. "$1"; shift; make_image "$@"',
    basename(library),
    library,
    archive,
    fullName(name),
    folder,
    JSON.stringify(settings),
  ]);
}

/** Returns the full image name on nodes: `app:1` is Docker's `docker.io/library/app:1`. */
function fullName(name: string): string {
  const [first = '', ...rest] = name.split('/');
  if (rest.length === 0) return `docker.io/library/${name}`;
  return /[.:]/.test(first) || first === 'localhost' ? name : `docker.io/${name}`;
}
