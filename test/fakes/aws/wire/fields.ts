import type { WireValue } from './schema.ts';

/** A member of a structure; undefined when there is none, or the value is no structure. */
export function fieldOf(value: WireValue | undefined, name: string): WireValue | undefined {
  if (typeof value !== 'object' || value instanceof Date || value instanceof Uint8Array) return undefined;
  return new Map<string, WireValue>(Object.entries(value)).get(name);
}

/** A member that is text. */
export function textOf(value: WireValue | undefined, name: string): string | undefined {
  const field = fieldOf(value, name);
  return typeof field === 'string' ? field : undefined;
}

/** The entries of a member that is a list; none when it is not there. */
export function itemsOf(value: WireValue | undefined, name: string): readonly WireValue[] {
  const field = fieldOf(value, name);
  return Array.isArray(field) ? field : [];
}
