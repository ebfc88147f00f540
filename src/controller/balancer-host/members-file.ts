import { readFileSync } from 'node:fs';
import type { BalancerHostMember } from '../../domain/balancer-host.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';

/** How often reconcilers look whether there are others, ms. */
const lookMs = 250;

/** Says who the balancer hosts are, for the reconcilers of this machine. */
export function writeMembers(path: string, members: readonly BalancerHostMember[]): void {
  writeFileAtomic(path, JSON.stringify(members));
}

/** Calls back with the balancer hosts now, if they are known, and whenever they change. */
export function watchMembers(path: string, clock: Clock, onMembers: (members: readonly BalancerHostMember[]) => void): CancelTimer {
  let known: string | undefined;
  const look = (): void => {
    const text = readText(path);
    if (text === undefined || text === known) return;
    known = text;
    const members = parseJson(text);
    if (Array.isArray(members) && members.every(isMember)) onMembers(members);
  };
  look();
  return clock.every(lookMs, look);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not written yet: the controller has just begun to look for them.
    return undefined;
  }
}

function isMember(value: unknown): value is BalancerHostMember {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['host'] === 'string' && typeof value['port'] === 'number';
}
