import { shapeOf, simpleValue, traitsOf, type Shape, type WireValue } from './schema.ts';
import type { $SchemaRef } from '@smithy/types';

/** An element of an XML document, with text when it has no child elements. Attributes and namespaces are ignored. */
export interface XmlElement {
  readonly name: string;
  readonly text: string;
  readonly children: readonly XmlElement[];
}

const token = /<\?[^>]*\?>|<!--[\s\S]*?-->|<(\/?)([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|([^<]+)/gy;
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescape(text: string): string {
  return text.replaceAll(/&(?:#x([\da-fA-F]+)|#(\d+)|(\w+));/g, (whole, hex: string, decimal: string, named: string) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return entities[named] ?? whole;
  });
}

/**
 * Parses a document of elements and text; undefined when it is not well-formed. It supports no DTDs, so no input can
 * refer to a file.
 */
export function parseXml(document: string): XmlElement | undefined {
  const open: { name: string; text: string; children: XmlElement[] }[] = [{ name: '', text: '', children: [] }];
  token.lastIndex = 0;
  while (token.lastIndex < document.length) {
    const match = token.exec(document);
    const inside = open.at(-1);
    if (match === null || inside === undefined) return undefined;
    const [, closing, name, , empty, text] = match;
    if (text !== undefined) inside.text += unescape(text);
    if (name === undefined) continue;
    if (closing === '/') {
      open.pop();
      const parent = open.at(-1);
      if (inside.name !== name || parent === undefined) return undefined;
      parent.children.push(inside);
    } else if (empty === '/') inside.children.push({ name, text: '', children: [] });
    else open.push({ name, text: '', children: [] });
  }
  const [root] = open;
  return open.length === 1 && root?.children.length === 1 ? root.children[0] : undefined;
}

/**
 * Parses a document by the schema; undefined when it does not fit: an unknown element, or text where a number belongs.
 */
export function readXml(schema: $SchemaRef, root: XmlElement): WireValue | undefined {
  return valueOf(shapeOf(schema), root);
}

function valueOf(shape: Shape, element: XmlElement): WireValue | undefined {
  if (shape.isListSchema()) return listOf(shape, element.children);
  if (!shape.isStructSchema()) return simpleValue(shape, element.text);
  const value: Record<string, WireValue> = {};
  let read = 0;
  for (const [name, member] of shape.structIterator()) {
    const traits = traitsOf(member);
    const found = element.children.filter((child) => child.name === (traits.xmlName ?? name));
    const [first] = found;
    if (first === undefined) continue;
    read += found.length;
    const flat = member.isListSchema() && traits.xmlFlattened !== undefined;
    const field = flat ? listOf(member, found) : valueOf(member, first);
    if (field === undefined) return undefined;
    value[name] = field;
  }
  return read === element.children.length ? value : undefined;
}

function listOf(shape: Shape, elements: readonly XmlElement[]): WireValue | undefined {
  const item = shape.getValueSchema();
  const values = elements.map((element) => valueOf(item, element));
  const known = values.filter((value) => value !== undefined);
  return known.length === values.length ? known : undefined;
}
