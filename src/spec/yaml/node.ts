/** A YAML document after aliases and merge keys; parts may be shared. Only this folder depends on the YAML package. */
export type YamlNode = ScalarNode | ListNode | MapNode;

interface NodeBase {
  /** Offset of its first character in the file. */
  readonly at: number;
  /** Values in it, itself included, aliases counted each time they are used. */
  readonly size: number;
  /** Levels of nesting in it; 1 for a scalar. */
  readonly depth: number;
  /** Characters of its texts and keys in the file, aliases counted each time they are used. */
  readonly characters: number;
}

/** One value. */
export interface ScalarNode extends NodeBase {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
  /** The text in the file, quotes resolved: `yes`, `0x10`, `hello`. Never the value of a variable. */
  readonly text: string;
  /** `substituted`: contains a variable's value. `withheld`: names a declared variable that has no value. */
  readonly origin: 'file' | 'substituted' | 'withheld';
}

/** Values in order. */
export interface ListNode extends NodeBase {
  readonly kind: 'list';
  readonly items: readonly YamlNode[];
}

/** Values by key, in the order of the file. */
export interface MapNode extends NodeBase {
  readonly kind: 'map';
  readonly entries: ReadonlyMap<string, MapEntry>;
}

/** One value of a map, with its key. */
export interface MapEntry {
  readonly keyAt: number;
  /** The key as it stands in the file. */
  readonly keyText: string;
  readonly value: YamlNode;
}

/** A path in a document: keys and indices from the root. */
export type Path = readonly PropertyKey[];

/** The node at a path, or undefined when there is none. */
export function nodeAt(root: YamlNode, path: Path): YamlNode | undefined {
  let node: YamlNode | undefined = root;
  for (const step of path) node = node === undefined ? undefined : child(node, step);
  return node;
}

function child(node: YamlNode, step: PropertyKey): YamlNode | undefined {
  if (node.kind === 'list') return typeof step === 'number' ? node.items[step] : undefined;
  if (node.kind === 'map') return node.entries.get(String(step))?.value;
  return undefined;
}

/** The map entry that the last step of a path names. */
export function entryAt(root: YamlNode, path: Path): MapEntry | undefined {
  const last = path.at(-1);
  if (last === undefined) return undefined;
  const parent = nodeAt(root, path.slice(0, -1));
  return parent?.kind === 'map' ? parent.entries.get(String(last)) : undefined;
}

/** Plain data for validation. Own properties only: `constructor` is a normal key. `__proto__` is refused earlier. */
export function toValue(node: YamlNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(toValue);
  return Object.fromEntries([...node.entries].map(([key, entry]) => [key, toValue(entry.value)]));
}
