import type { Task } from '../domain/task.ts';
import { isObject } from '../shared/is-object.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { PlaceRecord, ServiceMemory } from './records.ts';

// These look for damage, not for mistakes in our own writing: what every reader relies on is checked, not every leaf.

/** Whether it is a replica's address. */
export function isReplicaAddress(value: unknown): value is ReplicaAddress {
  if (!isObject(value) || typeof value['port'] !== 'number') return false;
  if (value['by'] !== undefined && typeof value['by'] !== 'string') return false;
  if (value['kind'] === 'tcp') return typeof value['host'] === 'string';
  return (value['kind'] === 'unix' || value['kind'] === 'forward') && typeof value['path'] === 'string';
}

/** Whether it is a place. */
export function isPlace(value: unknown): value is PlaceRecord {
  return (
    isObject(value) &&
    typeof value['provider'] === 'string' &&
    typeof value['region'] === 'string' &&
    typeof value['hourlyUsd'] === 'number'
  );
}

const isPlacementMemory = (value: unknown): boolean =>
  isObject(value) && Array.isArray(value['refusals']) && Array.isArray(value['starts']);

/** Whether it is a service's memory. */
export function isServiceMemory(value: unknown): value is ServiceMemory {
  return (
    isObject(value) &&
    typeof value['initialised'] === 'boolean' &&
    Array.isArray(value['failures']) &&
    typeof value['autoscaler'] === 'object' &&
    (value['placement'] === undefined || isPlacementMemory(value['placement']))
  );
}

/** Whether it is a task. */
export function isTask(value: unknown): value is Task {
  return (
    isObject(value) &&
    isObject(value['resources']) &&
    isObject(value['envs']) &&
    isObject(value['secrets']) &&
    Array.isArray(value['fileMounts'])
  );
}
