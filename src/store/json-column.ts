import { SvcError } from '../shared/errors.ts';

/** Tells whether parsed JSON is what a column is meant to hold. */
export type Guard<Value> = (value: unknown) => value is Value;

/** JSON text for a column; null stays the column's own null. */
export function toJson(value: object): string;
export function toJson(value: object | null): string | null;
export function toJson(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

/**
 * The value in a JSON column. Throws SVC_STATE_CORRUPT, naming the column, when it is no JSON or not what the column is meant to hold.
 * The parser's own message is left out: it quotes the text, which may hold secrets.
 */
export function fromJson<Value>(text: string, column: string, isValue: Guard<Value>): Value {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Stays undefined, which no column holds: reported below.
  }
  if (!isValue(value)) throw new SvcError('SVC_STATE_CORRUPT', `The state database has unreadable content in ${column}.`);
  return value;
}

/** Like `fromJson`, with null for the column's null. */
export function fromJsonOrNull<Value>(text: string | null, column: string, isValue: Guard<Value>): Value | null {
  return text === null ? null : fromJson(text, column, isValue);
}
