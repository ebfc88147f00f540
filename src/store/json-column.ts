import { withDefaults } from '../domain/load-balancer.ts';
import type { OfferRecord, ServiceMemory } from '../domain/records.ts';
import { defaultUpdate, type Task, type UpdatePolicy } from '../domain/task.ts';
import type { ZoneHistory } from '../domain/spot/zone-history.ts';
import { SvcError } from '../shared/errors.ts';
import { parseJson, withCurrentNames, isObject } from '../shared/json.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';

type Guard<Value> = (value: unknown) => value is Value;

/** JSON text for a column; null stays null. */
export function toJson(value: object): string;
/** JSON text for a column; null stays null. */
export function toJson(value: object | null): string | null;
/** JSON text for a column; null stays null. */
export function toJson(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

/** Throws SVC_STATE_CORRUPT with the name of the column when the text is no JSON or has another type. */
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
  if (service === undefined) return task;
  // Tasks from before updates existed have no update policy.
  const update: Partial<UpdatePolicy> | undefined = service.update;
  return { ...task, service: { ...service, loadBalancer: withDefaults(service.loadBalancer), update: { ...defaultUpdate, ...update } } };
}

function checked<Value>(value: unknown, column: string, isValue: Guard<Value>): Value {
  if (!isValue(value)) throw new SvcError('SVC_STATE_CORRUPT', `The state database has unreadable content in ${column}.`);
  return value;
}

// These guards detect damage, not bugs of svc: they check the fields that every reader relies on, not every field.

/** Whether a value is a replica's address. */
export function isReplicaAddress(value: unknown): value is ReplicaAddress {
  if (!isObject(value) || typeof value['port'] !== 'number') return false;
  if (value['by'] !== undefined && typeof value['by'] !== 'string') return false;
  if (value['kind'] === 'tcp') return typeof value['host'] === 'string';
  return (value['kind'] === 'unix' || value['kind'] === 'forward') && typeof value['path'] === 'string';
}

/** Whether a value is the history of a spot zone. */
export function isZoneHistory(value: unknown): value is ZoneHistory {
  const numbers = ['changedAt', 'seenAt', 'refusals', 'retryAt', 'losses', 'predicted'];
  return isObject(value) && typeof value['isOpen'] === 'boolean' && numbers.every((name) => typeof value[name] === 'number');
}

/** Whether a value is a replica's location and machine. */
export function isOfferRecord(value: unknown): value is OfferRecord {
  return (
    isObject(value) &&
    typeof value['provider'] === 'string' &&
    typeof value['region'] === 'string' &&
    typeof value['hourlyUsd'] === 'number'
  );
}

const isPlacementMemory = (value: unknown): boolean =>
  isObject(value) && Array.isArray(value['refusals']) && Array.isArray(value['starts']);

/** Whether a value is a service's memory. */
export function isServiceMemory(value: unknown): value is ServiceMemory {
  return (
    isObject(value) &&
    typeof value['initialised'] === 'boolean' &&
    Array.isArray(value['failures']) &&
    typeof value['autoscaler'] === 'object' &&
    (value['placement'] === undefined || isPlacementMemory(value['placement']))
  );
}

function isTask(value: unknown): value is Task {
  return (
    isObject(value) &&
    isObject(value['resources']) &&
    isObject(value['envs']) &&
    isObject(value['secrets']) &&
    Array.isArray(value['fileMounts'])
  );
}
