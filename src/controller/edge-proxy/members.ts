import { readFileSync } from 'node:fs';
import type { EdgeProxies, EdgeProxyMember } from '../../domain/edge-proxy/edge-proxy.ts';
import type { WatchedList } from '../../kubernetes/watched-list.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { EdgeProxyGroup } from './edge-proxy-group.ts';
import { type BalancerPod, type WatchPodsDeps, membersOf, watchPods } from './pods.ts';
import { readSharedKey } from './shared-key.ts';

/** Calls back with the edge proxies once they are known, and on every change, until the signal aborts. */
async function findMembers(
  { namespace, members, port }: EdgeProxies,
  deps: WatchPodsDeps,
  onMembers: (members: readonly EdgeProxyMember[]) => void,
): Promise<void> {
  if (namespace === undefined) return onMembers((members ?? []).map((host) => ({ name: host, host, port })));
  const { pods } = await watchPods(namespace, deps);
  await reportMembers(pods, port, deps.signal, onMembers);
}

/** The same for watched pods. Settles when the pods are known, or when the watch ended first. */
export async function reportMembers(
  pods: WatchedList<BalancerPod>,
  port: number,
  signal: AbortSignal,
  onMembers: (members: readonly EdgeProxyMember[]) => void,
): Promise<void> {
  await Promise.race([pods.synced, pods.ended]);
  if (signal.aborted) return;
  const report = (): void => onMembers(membersOf(pods.items, port));
  pods.onChange(report);
  report();
}

/** The edge proxies that serve endpoints on other machines, if there are any. Reconcilers read them from a file. */
export function findEdgeProxies(
  { controllerHost, paths, clock, random, log, fence, term = 0 }: DaemonContext,
  signal: AbortSignal,
): EdgeProxyGroup | undefined {
  if (controllerHost?.balancers === undefined) return undefined;
  const proxies = new EdgeProxyGroup({ key: readSharedKey(controllerHost.balancers.tokenFile), term, clock }, log);
  signal.addEventListener('abort', () => proxies.close(), { once: true });
  const finding = findMembers(controllerHost.balancers, { clock, random, fence, log, signal }, (members) => {
    if (signal.aborted) return;
    writeMembers(paths.edgeProxies, members);
    proxies.setMembers(members);
  });
  void finding.catch((error: unknown) => log.error({ err: error }, 'the edge proxies cannot be found'));
  return proxies;
}

/** How often reconcilers check the list for changes, ms. */
const pollIntervalMs = 250;

function writeMembers(path: string, members: readonly EdgeProxyMember[]): void {
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
