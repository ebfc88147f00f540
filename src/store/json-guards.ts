import type { Task } from '../domain/task.ts';
import { isObject } from '../shared/json.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { OfferRecord, ServiceMemory } from '../domain/records.ts';

// These guards detect damage, not bugs of svc: they check the fields that every reader relies on, not every field.

/** Whether a value is a replica's address. */
export function isReplicaAddress(value: unknown): value is ReplicaAddress {
  if (!isObject(value) || typeof value['port'] !== 'number') return false;
  if (value['by'] !== undefined && typeof value['by'] !== 'string') return false;
  if (value['kind'] === 'tcp') return typeof value['host'] === 'string';
  return (value['kind'] === 'unix' || value['kind'] === 'forward') && typeof value['path'] === 'string';
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

/** Whether a value is a task. */
export function isTask(value: unknown): value is Task {
  return (
    isObject(value) &&
    isObject(value['resources']) &&
    isObject(value['envs']) &&
    isObject(value['secrets']) &&
    Array.isArray(value['fileMounts'])
  );
}
