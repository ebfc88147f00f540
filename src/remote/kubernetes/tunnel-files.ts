import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { PodRef } from '../../kubernetes/kube-api.ts';
import { fingerprint } from '../../shared/hex.ts';
import { isObject } from '../../shared/json.ts';
import { readJsonFile } from '../../shared/system/files.ts';
import type { HomePaths } from '../../shared/paths.ts';

/** The end of a tunnel in its pod: a port, or a Unix socket by its absolute path. */
export type TunnelEnd = number | string;

/** A local socket file and its end in the pod. */
export interface PodTunnel {
  readonly socket: string;
  readonly to: TunnelEnd;
}

/** The tunnels of one pod, as stored on disk. */
interface PodTunnelsRecord {
  readonly pod: PodRef;
  readonly tunnels: readonly PodTunnel[];
}

/** Files of the forwarder of one Kubernetes cluster. Names are short: Linux allows 107 bytes for a socket's path. */
export interface ForwarderFiles {
  /** Mode 0700; shared by all Kubernetes clusters. */
  readonly socketDir: string;
  /** The forwarder's control socket. */
  readonly control: string;
  /** Holds the forwarder's process identity. */
  readonly identity: string;
  /** Folder with one record per pod that has tunnels. */
  readonly records: string;
  readonly log: string;
}

/** The paths for one context. Pure. */
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

/** The socket file of a tunnel; the same each time. Pure. */
export function tunnelSocket({ socketDir }: ForwarderFiles, record: string, to: TunnelEnd): string {
  return join(socketDir, `w${record}.${typeof to === 'number' ? to : digest(to)}`);
}

/** The record of a pod; undefined when the pod has no tunnels. */
export function readTunnels(files: ForwarderFiles, record: string): PodTunnelsRecord | undefined {
  const value = readJsonFile(join(files.records, record))?.value;
  if (!isObject(value) || !isPodRef(value['pod']) || !Array.isArray(value['ways'])) return undefined;
  return { pod: value['pod'], tunnels: value['ways'].filter(isTunnel) };
}

/** Names of all records. */
export function listRecords(files: ForwarderFiles): readonly string[] {
  try {
    return readdirSync(files.records).filter((name) => /^[0-9a-f]{10}$/.test(name));
  } catch {
    // No tunnel was ever opened for this context.
    return [];
  }
}

function isPodRef(value: unknown): value is PodRef {
  return isObject(value) && typeof value['namespace'] === 'string' && typeof value['name'] === 'string';
}

function isTunnel(value: unknown): value is PodTunnel {
  return isObject(value) && typeof value['socket'] === 'string' && (typeof value['to'] === 'number' || typeof value['to'] === 'string');
}

/** Ten hex digits: 40 bits are enough to distinguish the pods of one home. */
function digest(value: unknown): string {
  return fingerprint(JSON.stringify(value)).slice(0, 10);
}
