import { rmSync } from 'node:fs';
import type { ControllerPlace } from '../domain/controller-host.ts';
import { writeFileAtomic } from '../shared/atomic-file.ts';
import { SvcError } from '../shared/errors.ts';
import { isObject } from '../shared/is-object.ts';
import { readJsonFile } from '../shared/parse-json.ts';

/** The controller on another machine, from the intent to have it until it is gone. */
export interface ControllerRecord {
  /** Idempotency key given to the place; written before anything is asked for. */
  readonly key: string;
  /** Where a machine was asked for, or given; null while none has been. */
  readonly place: ControllerPlace | null;
  readonly machineId: string | null;
  /** Fingerprint of the program that was put there last; null until all of it is there. */
  readonly program: string | null;
  /** What starts it after the machine was started: `systemd`, `cron` or `none`. */
  readonly boot: string | null;
  /** Socket of its API on that machine. */
  readonly socket: string | null;
  /** Address at which clients reach endpoints; null until it is known. */
  readonly publicHost: string | null;
  /** What the configuration asked for, as JSON: what it asks for later has no effect on this one. */
  readonly wished: string;
  readonly createdAt: number;
  /** It is being taken away: nothing is to be asked of it any more. */
  readonly isLeaving: boolean;
  /** Of one that survives its node: the cluster and namespace it lives in. Absent where it is one program on one machine. */
  readonly cluster?: { readonly context: string; readonly namespace: string };
}

/** The record; undefined when the controller is on this machine, or nowhere. Throws SVC_STATE_CORRUPT when it cannot be read. */
export function readControllerRecord(path: string): ControllerRecord | undefined {
  const file = readJsonFile(path);
  if (file === undefined) return undefined;
  if (isControllerRecord(file.value)) return file.value;
  throw new SvcError('SVC_STATE_CORRUPT', `${path} does not say where the controller is.`, {
    hint: `Restore it from a copy. Without it the machine of the controller must be looked for by its tag 'svc-controller'.`,
  });
}

/** As `readControllerRecord`, for who needs one. Throws SVC_CONTROLLER_UNREACHABLE when there is none. */
export function existingControllerRecord(path: string): ControllerRecord {
  const record = readControllerRecord(path);
  if (record === undefined) throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'There is no controller on another machine.');
  return record;
}

/** A controller for which nothing was asked of a place yet. */
export function freshControllerRecord(known: Pick<ControllerRecord, 'key' | 'wished' | 'createdAt'>): ControllerRecord {
  return { ...known, place: null, machineId: null, program: null, boot: null, socket: null, publicHost: null, isLeaving: false };
}

/** Writes the record in one step. */
export function writeControllerRecord(path: string, record: ControllerRecord): void {
  writeFileAtomic(path, `${JSON.stringify(record, undefined, 2)}\n`);
}

/** There is no controller elsewhere any more. */
export function removeControllerRecord(path: string): void {
  rmSync(path, { force: true });
}

function isControllerRecord(value: unknown): value is ControllerRecord {
  if (!isObject(value)) return false;
  const { key, place, machineId, program, boot, socket, publicHost, wished, createdAt, isLeaving, cluster } = value;
  return (
    typeof key === 'string' &&
    (place === null || (isObject(place) && typeof place['provider'] === 'string' && typeof place['hourlyUsd'] === 'number')) &&
    [machineId, program, boot, socket, publicHost].every(isTextOrNull) &&
    typeof wished === 'string' &&
    typeof createdAt === 'number' &&
    typeof isLeaving === 'boolean' &&
    (cluster === undefined || (isObject(cluster) && [cluster['context'], cluster['namespace']].every((name) => typeof name === 'string')))
  );
}

function isTextOrNull(field: unknown): boolean {
  return field === null || typeof field === 'string';
}
