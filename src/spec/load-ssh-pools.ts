import type { SshPool } from '../domain/ssh-pool.ts';
import { SvcError } from '../shared/errors.ts';
import { readTextFile } from './read-text-file.ts';

/** Bytes (1 MiB). */
const maxPoolsBytes = 1_048_576;

/** Reads the file of the user's pools of hosts; an absent one has none. Throws SVC_INVALID_CONFIG with all problems at once. */
export async function loadSshPools(path: string): Promise<readonly SshPool[]> {
  try {
    const text = readTextFile(path, 'The file of SSH pools', maxPoolsBytes, (file) => {
      return new SvcError('SVC_INVALID_CONFIG', `${file} is larger than 1 MiB, which no list of hosts needs to be.`);
    });
    return parseSshPools(text, path);
  } catch (error: unknown) {
    if (error instanceof SvcError && error.code === 'SVC_FILE_NOT_FOUND') return [];
    throw error;
  }
}

/** The text of such a file as pools. */
export function parseSshPools(text: string, file: string): readonly SshPool[] {
  if (text.trim() === '') return [];
  throw new SvcError('SVC_NOT_SUPPORTED', `${file} cannot be read by this version.`);
}
