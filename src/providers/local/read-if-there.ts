import { readFileSync } from 'node:fs';

/** What a file says; nothing where it is not there, or not any more. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It was never written, or somebody removed it.
    return '';
  }
}
