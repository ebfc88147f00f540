import { readFileSync } from 'node:fs';
import { hasErrno } from './errors.ts';

/** What a JSON text says; undefined when it is none, such as one that was cut short. The parser's message is dropped: it quotes the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a JSON file says, undefined in `value` when it is none; undefined when there is no file. Throws what Node throws when it cannot be read. */
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
