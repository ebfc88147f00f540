import { withDefaults } from '../domain/load-balancer.ts';
import type { Task } from '../domain/task.ts';
import { SvcError } from '../shared/errors.ts';
import { parseJson, withCurrentNames } from '../shared/json.ts';
import { isTask } from './json-guards.ts';

/** Checks whether parsed JSON has the type of a column. */
type Guard<Value> = (value: unknown) => value is Value;

/** JSON text for a column; null stays null. */
export function toJson(value: object): string;
export function toJson(value: object | null): string | null;
export function toJson(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

/**
 * The value of a JSON column. Throws SVC_STATE_CORRUPT with the name of the column when the text is no JSON or has
 * another type.
 */
export function fromJson<Value>(text: string, column: string, isValue: Guard<Value>): Value {
  // Invalid JSON becomes undefined, which no column holds.
  return checked(parseJson(text), column, isValue);
}

/** Like `fromJson`, but returns null for null. */
export function fromJsonOrNull<Value>(text: string | null, column: string, isValue: Guard<Value>): Value | null {
  return text === null ? null : fromJson(text, column, isValue);
}

/** Fields of a task as earlier versions stored them. */
const formerTaskNames = new Map([['placeConfig', 'providerConfig']]);

/** Like `fromJson`, for a task of this or an earlier version, which lacks newer settings. */
export function taskFromJson(text: string, column: string): Task {
  const task = checked(withCurrentNames(parseJson(text), formerTaskNames), column, isTask);
  const { service } = task;
  return service === undefined ? task : { ...task, service: { ...service, loadBalancer: withDefaults(service.loadBalancer) } };
}

function checked<Value>(value: unknown, column: string, isValue: Guard<Value>): Value {
  if (!isValue(value)) throw new SvcError('SVC_STATE_CORRUPT', `The state database has unreadable content in ${column}.`);
  return value;
}
