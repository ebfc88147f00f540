import type { Random } from '../shared/random.ts';

/** What a service or cluster may be called: as users of this kind of tool know it, and safe as a file name. */
export const namePattern = /^[a-zA-Z]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$/;

/** Characters; leaves room for suffixes where clouds allow 63. */
export const maxNameLength = 50;

/** Undefined when the name is fine, else why not, as a sentence. */
export function nameProblem(name: string): string | undefined {
  if (name.length > maxNameLength) return `The name '${name.slice(0, maxNameLength)}…' is longer than ${maxNameLength} characters.`;
  if (namePattern.test(name)) return undefined;
  return `The name '${name}' is not allowed: it must start with a letter, end with a letter or digit, and hold only letters, digits, '-', '_' and '.'.`;
}

/** `svc-` and four hex digits. */
export function generateName(random: Random): string {
  const digits = Math.floor(random() * 0x1_0000)
    .toString(16)
    .padStart(4, '0');
  return `svc-${digits}`;
}
