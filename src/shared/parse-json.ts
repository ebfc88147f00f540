import { readFileSync } from 'node:fs';
import { hasErrno } from './errors.ts';
import { isObject } from './is-object.ts';

/**
 * The value of a JSON text; undefined when the text is not valid JSON, such as a truncated one. The parser's message is
 * dropped because it quotes the text.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The value of a JSON file; `value` is undefined for invalid JSON. Returns undefined when there is no file. Throws
 * Node's error when it cannot be read.
 */
export function readJsonFile(path: string): { readonly value: unknown } | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  return { value: parseJson(text) };
}

/** Renames top-level fields of stored JSON that earlier versions named differently: `names` maps former to current names. */
export function withCurrentNames(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [names.get(name) ?? name, field]));
}
