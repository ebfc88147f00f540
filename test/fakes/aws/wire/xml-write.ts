import { shapeOf, traitsOf, type Shape } from './schema.ts';
import type { $SchemaRef } from '@smithy/types';

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\r': '&#xD;' };

/** Escapes text for an element. */
export function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"\r]/g, (character) => entities[character] ?? character);
}

/** One element with text. */
export function xmlElement(name: string, text: string): string {
  return `<${name}>${escapeXml(text)}</${name}>`;
}

/**
 * Formats a value's members as XML elements, named and nested as the schema says; members that travel in headers are
 * left out.
 */
export function xmlMembers(schema: $SchemaRef, value: unknown): string {
  return membersOf(shapeOf(schema), value);
}

function membersOf(shape: Shape, value: unknown): string {
  if (shape.isUnitSchema() || typeof value !== 'object' || value === null) return '';
  const fields = new Map<string, unknown>(Object.entries(value));
  let xml = '';
  for (const [name, member] of shape.structIterator()) {
    const field = fields.get(name);
    fields.delete(name);
    const traits = traitsOf(member);
    const isOutsideBody = traits.httpHeader !== undefined || traits.httpPrefixHeaders !== undefined || traits.httpPayload !== undefined;
    if (field !== undefined && field !== null && !isOutsideBody) xml += elementOf(traits.xmlName ?? name, member, field);
  }
  const unknown = [...fields].filter(([, field]) => field !== undefined).map(([name]) => name);
  if (unknown.length > 0) throw new Error(`${shape.getName() ?? 'a shape'} has no member ${unknown.join(', ')}`);
  return xml;
}

function elementOf(name: string, shape: Shape, value: unknown): string {
  if (shape.isListSchema()) return listOf(name, shape, value);
  if (shape.isStructSchema()) return `<${name}>${membersOf(shape, value)}</${name}>`;
  if (value instanceof Date) return xmlElement(name, value.toISOString());
  if (value instanceof Uint8Array) return xmlElement(name, Buffer.from(value).toString('base64'));
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return xmlElement(name, String(value));
  throw new Error(`${name} is no text, number, boolean, time or list`);
}

function listOf(name: string, shape: Shape, value: unknown): string {
  if (!Array.isArray(value)) throw new Error(`${name} is no list`);
  const item = shape.getValueSchema();
  if (traitsOf(shape).xmlFlattened !== undefined) return value.map((entry) => elementOf(name, item, entry)).join('');
  const itemName = traitsOf(item).xmlName ?? 'member';
  return `<${name}>${value.map((entry) => elementOf(itemName, item, entry)).join('')}</${name}>`;
}
