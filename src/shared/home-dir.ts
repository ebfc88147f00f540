import { homedir } from 'node:os';
import { envVar } from './env.ts';

/** The user's home folder, for `~` in paths. */
export function homeDir(): string {
  return envVar('HOME') ?? homedir();
}
