import { shapeOf, type Shape, type WireValue } from './schema.ts';
import { ApiError } from './api-error.ts';
import type { $SchemaRef } from '@smithy/types';

/** Parses a JSON body by the schema; names that the API does not know are refused. */
export function readJson(schema: $SchemaRef, body: string): Record<string, WireValue> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body === '' ? '{}' : body);
  } catch {
    throw new ApiError('SerializationException', 'The request body is no JSON.', 400);
  }
  return struct(shapeOf(schema), parsed);
}

function struct(shape: Shape, value: unknown): Record<string, WireValue> {
  if (typeof value !== 'object' || value === null)
    throw new ApiError('SerializationException', `${shape.getName() ?? ''} is no object.`, 400);
  const members = shape.isUnitSchema() ? new Map<string, Shape>() : new Map(shape.structIterator());
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      const member = members.get(name);
      if (member === undefined) throw new ApiError('ValidationException', `Unknown field ${name}.`, 400);
      return [name, read(member, field)];
    }),
  );
}

function read(shape: Shape, value: unknown): WireValue {
  if (shape.isStructSchema()) return struct(shape, value);
  if (shape.isListSchema() && Array.isArray(value)) return value.map((entry) => read(shape.getValueSchema(), entry));
  if (shape.isTimestampSchema() && typeof value === 'number') return new Date(value * 1_000);
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  throw new ApiError('SerializationException', `${shape.getMemberName()} has a value of another type.`, 400);
}

/** Formats a reply as JSON: times are seconds since the epoch. */
export function writeJson(value: unknown): string {
  return JSON.stringify(value, function replace(this: Readonly<Record<string, unknown>>, key: string, field: unknown) {
    const original = this[key];
    return original instanceof Date ? original.getTime() / 1_000 : field;
  });
}
