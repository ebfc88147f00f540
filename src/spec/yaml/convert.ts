import { isAlias, isMap, isScalar, isSeq, type ParsedNode, type Scalar, type YAMLMap, type YAMLSeq } from 'yaml';
import { quote } from '../../shared/text.ts';
import type { Fault } from './fault.ts';
import type { ListNode, MapEntry, MapNode, ScalarNode, YamlNode } from './node.ts';
import { resolvePlain } from './plain-scalar.ts';

/** Limit of values with every alias expanded. Stops a "billion laughs" file; counting does not expand anything. */
const maxValues = 20_000;

/** As many as the largest file has, with every alias expanded: a text behind many aliases would fill the memory. */
const maxCharacters = 1_048_576;

/** Limit with every alias expanded. */
const maxDepth = 100;

const maxFaults = 100;

const coreTag = 'tag:yaml.org,2002:';
const knownTags = new Set(['!', ...['str', 'int', 'float', 'bool', 'null', 'map', 'seq', 'set'].map((name) => coreTag + name)]);

/** Converts the package's nodes to this module's: resolves aliases, merge keys and scalars, and makes keys text. */
export function convert(contents: ParsedNode): { readonly root: YamlNode | undefined; readonly faults: readonly Fault[] } {
  const conversion = new Conversion();
  const root = conversion.node(contents);
  if (conversion.faults.length > 0) return { root: undefined, faults: conversion.faults };
  if (root.size > maxValues) conversion.fault(root.at, 'the document holds too many values once its aliases are written out');
  else if (root.characters > maxCharacters) conversion.fault(root.at, 'the document is larger than 1 MiB once its aliases are written out');
  else if (root.depth > maxDepth) conversion.fault(root.at, `the document is nested more than ${maxDepth} levels deep`);
  return { root: conversion.faults.length === 0 ? root : undefined, faults: conversion.faults };
}

type AnyNode = ParsedNode | null;

class Conversion {
  readonly faults: Fault[] = [];
  /** Per name: the last node so far with this anchor. `undefined` while that node is being read. */
  readonly #anchors = new Map<string, YamlNode | undefined>();
  #mergedEntries = 0;

  fault(at: number, message: string, hint?: string): void {
    if (this.faults.length < maxFaults) this.faults.push({ at, message, ...(hint === undefined ? {} : { hint }) });
  }

  node(node: AnyNode, fallbackAt = 0): YamlNode {
    if (node === null) return scalar(null, '', fallbackAt);
    const at = node.range[0];
    if (isAlias(node)) return this.#alias(node.source, at);
    if (node.tag !== undefined && !knownTags.has(node.tag)) {
      this.fault(at, `the tag ${quote(node.tag)} is not supported`, 'Leave the tag out.');
    }
    const { anchor } = node;
    if (anchor !== undefined) this.#anchors.set(anchor, undefined);
    const converted = this.#collectionOrScalar(node, at);
    if (anchor !== undefined) this.#anchors.set(anchor, converted);
    return converted;
  }

  #collectionOrScalar(node: ParsedNode, at: number): YamlNode {
    if (isMap(node)) return this.#map(node, at);
    if (isSeq(node)) return this.#list(node, at);
    return isScalar(node) ? this.#scalar(node, at) : scalar(null, '', at);
  }

  #alias(name: string, at: number): YamlNode {
    const target = this.#anchors.get(name);
    if (target !== undefined) return target;
    if (this.#anchors.has(name)) this.fault(at, `the alias *${name} stands inside the very value it names`);
    else this.fault(at, `there is no anchor &${name} above this alias`);
    return scalar(null, '', at);
  }

  #scalar(node: Scalar, at: number): ScalarNode {
    const text = node.source ?? '';
    if (text.includes('\0')) this.fault(at, 'text cannot hold the NUL character');
    const tag = node.tag?.startsWith(coreTag) === true ? node.tag.slice(coreTag.length) : node.tag;
    if (tag === undefined) return scalar(node.type === 'PLAIN' ? resolvePlain(text) : text, text, at);
    if (tag === '!' || tag === 'str') return scalar(text, text, at);
    const value = resolvePlain(text);
    if (tagFits(tag, value)) return scalar(value, text, at);
    if (knownTags.has(coreTag + tag)) this.fault(at, `the value does not fit its tag !!${tag}`);
    return scalar(text, text, at);
  }

  #list(node: YAMLSeq<ParsedNode>, at: number): ListNode {
    const items = node.items.map((item) => this.node(item, at));
    return { kind: 'list', items, at, ...measure(items, []) };
  }

  #map(node: YAMLMap<ParsedNode, AnyNode>, at: number): MapNode {
    const own = new Map<string, MapEntry>();
    const merged: MapNode[] = [];
    for (const pair of node.items) {
      const keyAt = pair.key?.range[0] ?? at;
      if (isScalar(pair.key) && pair.key.type === 'PLAIN' && pair.key.source === '<<') {
        merged.push(...this.#merged(this.node(pair.value, keyAt), keyAt));
        continue;
      }
      const key = this.node(pair.key, keyAt);
      const value = this.node(pair.value, keyAt);
      if (key.kind !== 'scalar') this.fault(keyAt, 'a list or map cannot be a key');
      else if (key.text === '__proto__') this.fault(keyAt, "the key '__proto__' is not allowed");
      // The last of several equal keys wins, as for PyYAML: see docs/decisions/0008-last-duplicate-key-wins.md.
      else own.set(key.text, { keyAt, keyText: key.text, value });
    }
    const entries = new Map<string, MapEntry>();
    for (const [key, entry] of [...merged.flatMap((map) => [...map.entries]), ...own]) {
      // Among merged maps the first one wins. The map's own keys override them.
      if (own.has(key) ? own.get(key) === entry : !entries.has(key)) entries.set(key, entry);
    }
    const values = [...entries.values()].map((entry) => entry.value);
    return { kind: 'map', entries, at, ...measure(values, entries.keys()) };
  }

  #merged(node: YamlNode, at: number): readonly MapNode[] {
    const maps = node.kind === 'list' ? node.items : [node];
    if (maps.every((map) => map.kind === 'map')) {
      // Merging copies entries: the cost of a chain of merges is quadratic in its length.
      for (const map of maps) this.#mergedEntries += map.entries.size;
      if (this.#mergedEntries <= maxValues) return maps;
      if (this.faults.length === 0) this.fault(at, 'the document holds too many values once its merge keys are written out');
      return [];
    }
    this.fault(at, 'a merge key (<<) needs a map or a list of maps', 'Write: <<: *name');
    return [];
  }
}

function scalar(value: ScalarNode['value'], text: string, at: number): ScalarNode {
  return { kind: 'scalar', value, text, origin: 'file', at, size: 1, depth: 1, characters: text.length };
}

function tagFits(tag: string, value: ScalarNode['value']): boolean {
  if (tag === 'int') return Number.isInteger(value);
  if (tag === 'float') return typeof value === 'number';
  if (tag === 'bool') return typeof value === 'boolean';
  return tag === 'null' && value === null;
}

function measure(children: readonly YamlNode[], keys: Iterable<string>): Pick<YamlNode, 'size' | 'depth' | 'characters'> {
  let size = 1;
  let depth = 0;
  let characters = 0;
  for (const child of children) {
    size += child.size;
    depth = Math.max(depth, child.depth);
    characters += child.characters;
  }
  for (const key of keys) characters += key.length;
  return { size, depth: depth + 1, characters };
}
