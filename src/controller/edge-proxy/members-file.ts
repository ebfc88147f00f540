import { readFileSync } from 'node:fs';
import type { EdgeProxyMember } from '../../domain/edge-proxy/edge-proxy.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';

/** How often reconcilers check the list for changes, ms. */
const pollIntervalMs = 250;

/** Writes the list of edge proxies for the reconcilers of this machine. */
export function writeMembers(path: string, members: readonly EdgeProxyMember[]): void {
  writeFileAtomic(path, JSON.stringify(members));
}

/** Calls back with the edge proxies now, if they are known, and on every change. */
export function watchMembers(path: string, clock: Clock, onMembers: (members: readonly EdgeProxyMember[]) => void): CancelTimer {
  let known: string | undefined;
  const check = (): void => {
    const text = readText(path);
    if (text === undefined || text === known) return;
    known = text;
    const members = parseJson(text);
    if (Array.isArray(members) && members.every(isMember)) onMembers(members);
  };
  check();
  return clock.every(pollIntervalMs, check);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not written yet: the controller has just started to search for edge proxies.
    return undefined;
  }
}

function isMember(value: unknown): value is EdgeProxyMember {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['host'] === 'string' && typeof value['port'] === 'number';
}
