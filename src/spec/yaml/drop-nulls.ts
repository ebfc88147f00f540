import type { MapNode, YamlNode } from './node.ts';

/** A copy without the entries that are null in the given sections; `*` is any item of a list. */
export function dropNulls(root: MapNode, sections: readonly (readonly string[])[]): MapNode {
  let result = root;
  for (const section of sections) {
    const changed = at(result, section, withoutNulls);
    if (changed.kind === 'map') result = changed;
  }
  return result;
}

function withoutNulls(node: YamlNode): YamlNode {
  if (node.kind !== 'map') return node;
  return { ...node, entries: new Map([...node.entries].filter(([, { value }]) => value.kind !== 'scalar' || value.value !== null)) };
}

function at(node: YamlNode, path: readonly string[], change: (node: YamlNode) => YamlNode): YamlNode {
  const [step, ...rest] = path;
  if (step === undefined) return change(node);
  if (node.kind === 'list' && step === '*') return { ...node, items: node.items.map((item) => at(item, rest, change)) };
  const entry = node.kind === 'map' ? node.entries.get(step) : undefined;
  if (node.kind !== 'map' || entry === undefined) return node;
  return { ...node, entries: new Map(node.entries).set(step, { ...entry, value: at(entry.value, rest, change) }) };
}
