import { globToRegExp, toBytes } from './glob.ts';

/** The rules of one ignore file, for paths below its folder. */
export interface IgnoreFile {
  /** Whether a path (relative to the file's folder) is left out by the last rule that is about it; undefined when none is. */
  verdict(path: string, isFolder: boolean): boolean | undefined;
}

interface Rule {
  readonly isIgnored: boolean;
  readonly foldersOnly: boolean;
  /** For the last part of a path instead of all of it. */
  readonly nameOnly: boolean;
  readonly expression: RegExp;
}

/**
 * Reads the text of an ignore file with git's rules. `anyDepth`: patterns with a slash in the middle hold at any depth and `!` has no meaning, as
 * in SkyPilot's `.skyignore`; in git's such patterns hold from the file's own folder.
 */
export function parseIgnoreFile(text: string, anyDepth = false): IgnoreFile {
  const rules = text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .flatMap((line) => parseRule(toBytes(line), anyDepth))
    .toReversed();
  return {
    verdict(path, isFolder) {
      const bytes = toBytes(path);
      const name = bytes.slice(bytes.lastIndexOf('/') + 1);
      return rules.find(({ foldersOnly, nameOnly, expression }) => (isFolder || !foldersOnly) && expression.test(nameOnly ? name : bytes))
        ?.isIgnored;
    },
  };
}

/** One line, as a list of one rule or none. */
function parseRule(line: string, anyDepth: boolean): readonly Rule[] {
  if (line.startsWith('#')) return [];
  let pattern = trimEnd(line.replace(/\r$/, ''));
  const isIgnored = anyDepth || !pattern.startsWith('!');
  if (!isIgnored) pattern = pattern.slice(1);
  const foldersOnly = pattern.endsWith('/');
  if (foldersOnly) pattern = pattern.slice(0, -1);
  const nameOnly = !pattern.includes('/');
  if (pattern.startsWith('/')) pattern = pattern.slice(1);
  else if (anyDepth && !nameOnly) pattern = `**/${pattern}`;
  const expression = pattern === '' ? undefined : globToRegExp(pattern);
  return expression === undefined ? [] : [{ isIgnored, foldersOnly, nameOnly, expression }];
}

/** Spaces at the end do not count unless a backslash is before them. */
function trimEnd(line: string): string {
  let end = 0;
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === '\\') at += 1;
    else if (line[at] === ' ') continue;
    end = Math.min(at + 1, line.length);
  }
  return line.slice(0, end);
}
