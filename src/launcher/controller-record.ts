import { rmSync } from 'node:fs';
import type { ControllerMachineInfo } from '../domain/remote-controller-info.ts';
import { writeFileAtomic, readJsonFile } from '../shared/system/files.ts';
import { SvcError } from '../shared/errors.ts';
import { isObject, withCurrentNames } from '../shared/json.ts';

/** The record of a remote controller, from the intent until its removal. */
export interface ControllerRecord {
  /** Idempotency key for the provider; recorded before any request. */
  readonly key: string;
  /** Where a machine was requested or created; null before the first request. */
  readonly machine: ControllerMachineInfo | null;
  readonly machineId: string | null;
  /** Fingerprint of the last complete installation; null before it. */
  readonly program: string | null;
  /** What starts it with its machine: `systemd`, `cron` or `none`. */
  readonly boot: string | null;
  readonly socket: string | null;
  /** Where clients reach endpoints; null until it is known. */
  readonly publicHost: string | null;
  /** Configured resources as JSON. Later changes of the configuration do not affect this controller. */
  readonly requestedResources: string;
  readonly createdAt: number;
  /** No command may use it any more. */
  readonly isTerminating: boolean;
  /** For a controller that survives its node; absent for a single program on one machine. */
  readonly cluster?: { readonly context: string; readonly namespace: string };
}

const formerNames = new Map([
  ['place', 'machine'],
  ['wished', 'requestedResources'],
  ['isLeaving', 'isTerminating'],
]);

/** Undefined when the controller is local or does not exist. Throws SVC_STATE_CORRUPT for an unreadable file. */
export function readControllerRecord(path: string): ControllerRecord | undefined {
  const file = readJsonFile(path);
  if (file === undefined) return undefined;
  const record = withCurrentNames(file.value, formerNames);
  if (isControllerRecord(record)) return record;
  throw new SvcError('SVC_STATE_CORRUPT', `${path} does not say where the controller is.`, {
    hint: `Restore it from a copy. Without it the machine of the controller must be looked for by its tag 'svc-controller'.`,
  });
}

/** As `readControllerRecord`, but throws SVC_CONTROLLER_UNREACHABLE when there is no record. */
export function existingControllerRecord(path: string): ControllerRecord {
  const record = readControllerRecord(path);
  if (record === undefined) throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'There is no controller on another machine.');
  return record;
}

/** The record before the first request to a provider. */
export function freshControllerRecord(known: Pick<ControllerRecord, 'key' | 'requestedResources' | 'createdAt'>): ControllerRecord {
  return { ...known, machine: null, machineId: null, program: null, boot: null, socket: null, publicHost: null, isTerminating: false };
}

/** Writes the record atomically. */
export function writeControllerRecord(path: string, record: ControllerRecord): void {
  writeFileAtomic(path, `${JSON.stringify(record, undefined, 2)}\n`);
}

/** Removes the record if no provider was called: no machine can exist. The caller holds the launch lock. */
export function removeIfUnrequested(path: string): void {
  const record = readControllerRecord(path);
  if (record !== undefined && isUnrequested(record)) removeControllerRecord(path);
}

/** Whether no provider was called for the machine. */
export function isUnrequested({ machine, machineId, cluster, isTerminating }: ControllerRecord): boolean {
  return machine === null && machineId === null && cluster === undefined && !isTerminating;
}

/** Removes the record of a remote controller that no longer exists. */
export function removeControllerRecord(path: string): void {
  rmSync(path, { force: true });
}

function isControllerRecord(value: unknown): value is ControllerRecord {
  if (!isObject(value)) return false;
  const { key, machine, machineId, program, boot, socket, publicHost, requestedResources, createdAt, isTerminating, cluster } = value;
  return (
    typeof key === 'string' &&
    (machine === null || (isObject(machine) && typeof machine['provider'] === 'string' && typeof machine['hourlyUsd'] === 'number')) &&
    [machineId, program, boot, socket, publicHost].every(isTextOrNull) &&
    typeof requestedResources === 'string' &&
    typeof createdAt === 'number' &&
    typeof isTerminating === 'boolean' &&
    (cluster === undefined || (isObject(cluster) && [cluster['context'], cluster['namespace']].every((name) => typeof name === 'string')))
  );
}

function isTextOrNull(field: unknown): boolean {
  return field === null || typeof field === 'string';
}
