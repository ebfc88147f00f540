import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { PodRef } from '../../kubernetes/kube-api.ts';
import { fingerprint } from '../../shared/fingerprint.ts';
import { isObject } from '../../shared/is-object.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import type { HomePaths } from '../../shared/paths.ts';

/** Where a way leads to in its pod: a port, or a Unix socket by its absolute path. */
export type WayEnd = number | string;

/** A socket file here and what it leads to. */
export interface PodWay {
  readonly socket: string;
  readonly to: WayEnd;
}

/** The ways of one pod, as they are on disk. */
export interface PodWaysRecord {
  readonly pod: PodRef;
  readonly ways: readonly PodWay[];
}

/** Files of the forwarder of one cluster. Names are short: Linux allows 107 bytes for a socket's path. */
export interface ForwarderFiles {
  /** Mode 0700; of all clusters. */
  readonly socketDir: string;
  /** Where the forwarder is asked. */
  readonly control: string;
  /** Which process it is. */
  readonly identity: string;
  /** A record for each pod that has ways. */
  readonly records: string;
  readonly log: string;
}

/** Pure. */
export function forwarderFiles(paths: HomePaths, context: string): ForwarderFiles {
  const name = digest(context);
  const socketDir = join(paths.runtimeDir, 'k');
  const control = join(socketDir, `c${name}`);
  const dir = join(paths.home, 'kubernetes', name);
  return { socketDir, control, identity: join(dir, 'forwarder.json'), records: join(dir, 'ways'), log: join(dir, 'forwarder.log') };
}

/** The name of a pod's record. Pure. */
export function recordName(context: string, { namespace, name, container = '' }: PodRef): string {
  return digest([context, namespace, name, container]);
}

/** The socket file of a way. The same each time. Pure. */
export function waySocket({ socketDir }: ForwarderFiles, record: string, to: WayEnd): string {
  return join(socketDir, `w${record}.${typeof to === 'number' ? to : digest(to)}`);
}

/** Undefined when the pod has no ways. */
export function readWays(files: ForwarderFiles, record: string): PodWaysRecord | undefined {
  const value = readJsonFile(join(files.records, record))?.value;
  if (!isObject(value) || !isPodRef(value['pod']) || !Array.isArray(value['ways'])) return undefined;
  return { pod: value['pod'], ways: value['ways'].filter(isWay) };
}

/** Names of all records. */
export function listRecords(files: ForwarderFiles): readonly string[] {
  try {
    return readdirSync(files.records).filter((name) => /^[0-9a-f]{10}$/.test(name));
  } catch {
    // No way was ever opened there.
    return [];
  }
}

function isPodRef(value: unknown): value is PodRef {
  return isObject(value) && typeof value['namespace'] === 'string' && typeof value['name'] === 'string';
}

function isWay(value: unknown): value is PodWay {
  return isObject(value) && typeof value['socket'] === 'string' && (typeof value['to'] === 'number' || typeof value['to'] === 'string');
}

/** Ten hex digits: 40 bits tell the pods of one home apart. */
function digest(value: unknown): string {
  return fingerprint(JSON.stringify(value)).slice(0, 10);
}
