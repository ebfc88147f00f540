import type { z } from 'zod';
import { didYouMean } from '../shared/did-you-mean.ts';
import { quote } from '../shared/text.ts';
import { wholeNumberMark } from './schema/kit.ts';
import { entryAt, nodeAt, type Path, type YamlNode } from './yaml/node.ts';

/** One validation finding, in svc's own words. */
interface Finding {
  readonly path: Path;
  /** Whether the finding concerns the path's last key rather than its value. */
  readonly key: boolean;
  readonly message: string;
  readonly hint: string | undefined;
  /** For an unknown field: the known field that was probably meant. */
  readonly meant?: string | undefined;
  /** For a missing field: its name. */
  readonly needs?: string;
}

type Issue = z.core.$ZodIssue;

/** Context of the findings, besides the issue. */
export interface FindingContext {
  readonly root: YamlNode;
  /** Sections by the field they know, to suggest the right section for a misplaced field. */
  readonly homes: ReadonlyMap<string, string>;
}

/**
 * Converts validation issues: one finding per unknown field, and for a union those of the best matching branch. A field
 * that is missing only because it is misspelt is reported once.
 */
export function findingsOf(issues: readonly Issue[], context: FindingContext): readonly Finding[] {
  const findings = issues.flatMap((issue) => fromIssue(issue, context));
  const misspelt = new Set(findings.flatMap(({ path, meant }) => (meant === undefined ? [] : [fieldKey(path.slice(0, -1), meant)])));
  return findings.filter(({ path, needs }) => needs === undefined || !misspelt.has(fieldKey(path, needs)));
}

const fieldKey = (path: Path, name: string): string => JSON.stringify([path, name]);

function fromIssue(issue: Issue, context: FindingContext): readonly Finding[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownField([...issue.path, key], key, issue.message.split(' '), context));
    case 'invalid_union':
      return unionFindings(issue, context);
    case 'invalid_key':
      return [invalidKey(issue, context)];
    case 'invalid_type':
      return [typeFinding(issue.path, [expectedWord(issue)], context)];
    case 'invalid_value': {
      const values = issue.values.map(String);
      return [{ path: issue.path, key: false, ...oneOf(values, issue.path, context) }];
    }
    case 'too_small':
    case 'too_big':
      return [
        {
          path: issue.path,
          key: false,
          message: `${range(issue)}${issue.origin === 'array' ? '' : found(issue.path, context)}`,
          hint: undefined,
        },
      ];
    case 'custom':
    case 'invalid_format':
    case 'invalid_element':
    case 'not_multiple_of':
      break;
  }
  return [{ path: issue.path, key: false, ...split(issue.message) }];
}

/** Messages in schemas may carry a hint after a line break. */
function split(message: string): { readonly message: string; readonly hint: string | undefined } {
  const [first = '', hint] = message.split('\n', 2);
  return { message: first, hint };
}

/** Known fields beyond this number are not listed in a hint. */
const longestList = 12;

function unknownField(path: Path, key: string, known: readonly string[], context: FindingContext): Finding {
  const text = entryAt(context.root, path)?.keyText ?? key;
  const meant = didYouMean(text, known);
  const home = context.homes.get(key);
  let hint = known.length > longestList ? undefined : `Known here: ${known.join(', ')}.`;
  if (meant !== undefined) hint = `Did you mean '${meant}'?`;
  else if (home !== undefined && path.length === 1) hint = `It belongs below '${home}:'.`;
  return { path, key: true, message: `unknown field ${quote(text)}`, hint, meant };
}

function invalidKey(issue: Issue & { readonly code: 'invalid_key' }, context: FindingContext): Finding {
  const key = entryAt(context.root, issue.path)?.keyText ?? '';
  const { message, hint } = split(issue.issues[0]?.message ?? issue.message);
  return { path: issue.path, key: true, message: `${quote(key)} ${message}`, hint };
}

function unionFindings(issue: Issue & { readonly code: 'invalid_union' }, context: FindingContext): readonly Finding[] {
  const branches = issue.errors.map((errors) => errors.map((error) => ({ ...error, path: [...issue.path, ...error.path] })));
  const scored = branches.map((errors) => ({ errors, score: Math.max(0, ...errors.map((error) => depthOf(error, issue.path.length))) }));
  const best = scored.toSorted((a, b) => b.score - a.score)[0];
  if (best !== undefined && best.score > 0) return best.errors.flatMap((error) => fromIssue(error, context));
  const expected = branches.flat().flatMap((error) => {
    if (error.code === 'invalid_type') return [expectedWord(error)];
    return error.code === 'invalid_value' ? error.values.map((value) => quote(String(value))) : [];
  });
  return [typeFinding(issue.path, [...new Set(expected)], context)];
}

/** How far a union's branch got before it failed: a refused value of the right type got further than a wrong type. */
function depthOf(issue: Issue, from: number): number {
  const depth = (issue.path.length - from) * 2;
  return issue.code === 'invalid_type' || issue.code === 'invalid_value' || issue.code === 'invalid_union' ? depth : depth + 1;
}

function typeFinding(path: Path, expected: readonly string[], context: FindingContext): Finding {
  const node = nodeAt(context.root, path);
  if (node === undefined) {
    const needs = String(path.at(-1));
    return { path: path.slice(0, -1), key: false, message: `needs ${quote(needs)}`, hint: undefined, needs };
  }
  const scalar = node.kind === 'scalar' ? node : undefined;
  const isQuotable = expected.includes('text') && scalar !== undefined && scalar.value !== null && typeof scalar.value !== 'string';
  return {
    path,
    key: false,
    message: `expected ${joinOr(expected)}${found(path, context)}`,
    hint: isQuotable ? `Put it in quotes to make it text: "${scalar.text}"` : undefined,
  };
}

function oneOf(
  values: readonly string[],
  path: Path,
  context: FindingContext,
): { readonly message: string; readonly hint: string | undefined } {
  const node = nodeAt(context.root, path);
  const meant = node?.kind === 'scalar' ? didYouMean(node.text, values) : undefined;
  const hint = meant === undefined ? undefined : `Did you mean '${meant}'?`;
  return { message: `must be one of ${joinOr(values)}${found(path, context)}`, hint };
}

function range(issue: Issue & { readonly code: 'too_small' | 'too_big' }): string {
  if (issue.code === 'too_small') {
    if (issue.origin === 'string') return 'must not be empty';
    if (issue.origin === 'array' || issue.origin === 'object' || issue.origin === 'record') return 'must not be empty';
    return issue.inclusive === false ? `must be greater than ${String(issue.minimum)}` : `must be at least ${String(issue.minimum)}`;
  }
  if (issue.origin === 'string') return `must not be longer than ${String(issue.maximum)} characters`;
  if (issue.origin === 'array') return `must not have more than ${String(issue.maximum)} entries`;
  return `must be at most ${String(issue.maximum)}`;
}

/** `, found text 'two'`. Shows the file's text, never the value of a variable. */
function found(path: Path, context: FindingContext): string {
  const node = nodeAt(context.root, path);
  if (node === undefined) return '';
  if (node.kind !== 'scalar') return `, found a ${node.kind}`;
  if (node.origin === 'substituted') return `, found the value of ${quote(node.text)}`;
  if (node.value === null) return ', found nothing';
  if (node.value === '') return ', found empty text';
  if (typeof node.value === 'string') return `, found text ${quote(node.text)}`;
  return typeof node.value === 'number' ? `, found the number ${quote(node.text).slice(1, -1)}` : `, found ${node.text}`;
}

const typeWords: Readonly<Record<string, string>> = {
  string: 'text',
  int: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of fields',
  record: 'a map of fields',
  null: 'nothing',
};

function expectedWord(issue: Issue & { readonly code: 'invalid_type' }): string {
  const expected = issue.message === wholeNumberMark ? 'int' : issue.expected;
  return typeWords[expected] ?? expected;
}

function joinOr(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? 'something else';
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}
