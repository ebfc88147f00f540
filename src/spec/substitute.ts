import { resolvePlain } from './yaml/plain-scalar.ts';
import { nodeAt, type MapEntry, type Path, type ScalarNode, type YamlNode } from './yaml/node.ts';

/** Variables of a file: names with values, and declared names without one. */
export interface Variables {
  readonly values: ReadonlyMap<string, string>;
  readonly missing: ReadonlySet<string>;
}

const reference = /\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g;

/** The names that a text refers to, as `$NAME` or `${NAME}`. */
export function referencedNames(text: string): readonly string[] {
  return [...text.matchAll(reference)].map(([, braced, bare]) => braced ?? bare ?? '');
}

/**
 * Substitutes variables in a document's texts and keys. Only declared names are replaced: other `$` may mean something
 * to the program. Each text is handled by itself, so no value can change the structure around it. All results share one
 * limit: a few names of a large value, or one text behind many aliases, would fill the memory.
 */
export class Substitution {
  readonly #variables: Variables;
  #charactersLeft: number;
  /** Offset of the text that exceeded the limit. From there on values are left out, and the result must not be used. */
  tooLongAt: number | undefined;

  /** Limit for all substituted texts together. */
  constructor(variables: Variables, maxCharacters: number) {
    this.#variables = variables;
    this.#charactersLeft = maxCharacters;
  }

  of(node: YamlNode): YamlNode {
    if (node.kind === 'list') return { ...node, items: node.items.map((item) => this.of(item)) };
    if (node.kind === 'scalar') return this.#scalar(node, (text) => this.#replaced(text, node.at));
    const entries = new Map<string, MapEntry>();
    for (const [key, entry] of node.entries) {
      entries.set(key.includes('$') ? this.#replaced(key, entry.keyAt) : key, { ...entry, value: this.of(entry.value) });
    }
    return { ...node, entries };
  }

  /** The same for text that contains JSON: a value inside a JSON string is escaped as JSON requires. */
  ofJson(node: YamlNode): YamlNode {
    return node.kind === 'scalar' ? this.#scalar(node, (text) => this.#replacedInJson(text, node.at)) : this.of(node);
  }

  #scalar(node: ScalarNode, replace: (text: string) => string): ScalarNode {
    if (typeof node.value !== 'string' || !node.value.includes('$')) return node;
    const { values, missing } = this.#variables;
    const names = referencedNames(node.value);
    if (names.some((name) => missing.has(name))) return { ...node, origin: 'withheld' };
    if (!names.some((name) => values.has(name))) return node;
    return { ...node, value: replace(node.value), origin: 'substituted' };
  }

  #replaced(text: string, at: number, escape = (value: string): string => value): string {
    this.#take(text, at);
    return text.replaceAll(reference, (whole: string, braced: string | undefined, bare: string | undefined) => {
      const value = this.#variables.values.get(braced ?? bare ?? '');
      if (value === undefined) return whole;
      // Escaping takes time in proportion to the value, so it stops at the limit.
      return this.tooLongAt === undefined ? this.#take(escape(value), at) : '';
    });
  }

  /** Outside of JSON strings a value is inserted unescaped (`{"n": $N}`); the result is checked afterwards. */
  #replacedInJson(text: string, at: number): string {
    let result = '';
    let start = 0;
    let inString = false;
    for (let index = 0; index <= text.length; index += 1) {
      if (inString && text[index] === '\\') {
        index += 1;
      } else if (text[index] === '"' || index === text.length) {
        result += this.#replaced(text.slice(start, index), at, inString ? escapeForJson : undefined) + (text[index] ?? '');
        start = index + 1;
        inString = !inString;
      }
    }
    return result;
  }

  /** The text while it fits the limit, nothing afterwards. */
  #take(text: string, at: number): string {
    this.#charactersLeft -= text.length;
    if (this.#charactersLeft >= 0) return text;
    this.tooLongAt ??= at;
    return '';
  }
}

const escapeForJson = (value: string): string => JSON.stringify(value).slice(1, -1);

/** A variable's text at a path as an unquoted scalar, unless that is text: `replicas: $N` with N=2 is a number. */
export function retyped(root: YamlNode, path: Path): number | boolean | undefined {
  const node = nodeAt(root, path);
  if (node?.kind !== 'scalar' || node.origin !== 'substituted' || typeof node.value !== 'string') return undefined;
  const value = resolvePlain(node.value.trim());
  return typeof value === 'number' || typeof value === 'boolean' ? value : undefined;
}
