import type { WireValue } from './schema.ts';

/** Returns a member of a structure; undefined when it is absent, or the value is no structure. */
export function fieldOf(value: WireValue | undefined, name: string): WireValue | undefined {
  if (typeof value !== 'object' || value instanceof Date || value instanceof Uint8Array) return undefined;
  return new Map<string, WireValue>(Object.entries(value)).get(name);
}

/** Returns a member that is text. */
export function textOf(value: WireValue | undefined, name: string): string | undefined {
  const field = fieldOf(value, name);
  return typeof field === 'string' ? field : undefined;
}

/** Returns the entries of a member that is a list; empty when it is absent. */
export function itemsOf(value: WireValue | undefined, name: string): readonly WireValue[] {
  const field = fieldOf(value, name);
  return Array.isArray(field) ? field : [];
}
