import type { Random } from '../shared/random.ts';

/** Valid names of services and clusters: familiar to users of this kind of tool, and safe as file names. */
const namePattern = /^[a-zA-Z]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$/;

/** Limit in characters. It leaves room for suffixes where clouds allow 63. */
export const maxNameLength = 50;

/** Why a name is invalid, as a sentence; undefined when it is valid. */
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
