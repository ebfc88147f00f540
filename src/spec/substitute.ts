import { resolvePlain } from './yaml/plain-scalar.ts';
import { nodeAt, type MapEntry, type Path, type ScalarNode, type YamlNode } from './yaml/node.ts';

/** What stands behind the names in a file: values, and names that are declared and have none. */
export interface Variables {
  readonly values: ReadonlyMap<string, string>;
  readonly missing: ReadonlySet<string>;
}

const reference = /\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g;

/**
 * Puts variables into every text and key of a part of a document. Only declared names are replaced, as `$` may mean something to the program.
 * It works on each text by itself, so that no value can change the structure around it.
 */
export function substitute(node: YamlNode, variables: Variables): YamlNode {
  if (node.kind === 'list') return { ...node, items: node.items.map((item) => substitute(item, variables)) };
  if (node.kind === 'scalar') return substituteScalar(node, variables, replaceReferences);
  const entries = new Map<string, MapEntry>();
  for (const [key, entry] of node.entries) {
    entries.set(replaceReferences(key, variables), { ...entry, value: substitute(entry.value, variables) });
  }
  return { ...node, entries };
}

/** The same for text that holds JSON: a value is put into the strings of the JSON, with the escapes it needs there. */
export function substituteJson(node: YamlNode, variables: Variables): YamlNode {
  return node.kind === 'scalar' ? substituteScalar(node, variables, replaceInJson) : substitute(node, variables);
}

function substituteScalar(node: ScalarNode, variables: Variables, replace: (text: string, variables: Variables) => string): ScalarNode {
  if (typeof node.value !== 'string' || !node.value.includes('$')) return node;
  const names = [...node.value.matchAll(reference)].map((match) => match[1] ?? match[2] ?? '');
  if (names.some((name) => variables.missing.has(name))) return { ...node, origin: 'withheld' };
  if (!names.some((name) => variables.values.has(name))) return node;
  return { ...node, value: replace(node.value, variables), origin: 'substituted' };
}

function replaceReferences(text: string, variables: Variables, escape = (value: string): string => value): string {
  return text.replaceAll(reference, (whole: string, braced: string | undefined, bare: string | undefined) => {
    const value = variables.values.get(braced ?? bare ?? '');
    return value === undefined ? whole : escape(value);
  });
}

const escapeForJson = (value: string): string => JSON.stringify(value).slice(1, -1);

/** Outside of JSON's strings a value goes in as it is (`{"n": $N}`); what comes out is checked afterwards. */
function replaceInJson(text: string, variables: Variables): string {
  let result = '';
  let start = 0;
  let inString = false;
  for (let index = 0; index <= text.length; index += 1) {
    if (inString && text[index] === '\\') {
      index += 1;
    } else if (text[index] === '"' || index === text.length) {
      result += replaceReferences(text.slice(start, index), variables, inString ? escapeForJson : undefined) + (text[index] ?? '');
      start = index + 1;
      inString = !inString;
    }
  }
  return result;
}

/** What a variable's text at a path means as an unquoted scalar, when that is not text: `replicas: $N` with N=2 is a number. */
export function retyped(root: YamlNode, path: Path): number | boolean | undefined {
  const node = nodeAt(root, path);
  if (node?.kind !== 'scalar' || node.origin !== 'substituted' || typeof node.value !== 'string') return undefined;
  const value = resolvePlain(node.value.trim());
  return typeof value === 'number' || typeof value === 'boolean' ? value : undefined;
}
