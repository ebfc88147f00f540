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

/** Makes an image archive (as `docker save` writes them) of a folder, for `loadImage`: the folder is its only layer, everything in it is root's. */
export async function imageOfFolder(archive: string, name: string, folder: string, settings: ImageSettings = {}): Promise<void> {
  const library = new URL('image-archive.sh', import.meta.url).pathname;
  // The second word is the name of the script in its messages.
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

/** As nodes call it: `app:1` is Docker's `docker.io/library/app:1`. */
function fullName(name: string): string {
  const [first = '', ...rest] = name.split('/');
  if (rest.length === 0) return `docker.io/library/${name}`;
  return /[.:]/.test(first) || first === 'localhost' ? name : `docker.io/${name}`;
}
