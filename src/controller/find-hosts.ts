import { findMembers } from './balancer-host/find-members.ts';
import { HostGroup } from './balancer-host/host-group.ts';
import { writeMembers } from './balancer-host/members-file.ts';
import { readSharedKey } from './balancer-host/shared-key.ts';
import type { DaemonContext } from './daemon-context.ts';

/** Where endpoints are served, when that is not on this machine. The reconcilers find them by a file. */
export function findHosts({ host, paths, clock, random, log, fence, term = 0 }: DaemonContext, signal: AbortSignal): HostGroup | undefined {
  if (host?.balancers === undefined) return undefined;
  const hosts = new HostGroup({ key: readSharedKey(host.balancers.tokenFile), term, clock }, log);
  signal.addEventListener('abort', () => hosts.close(), { once: true });
  const finding = findMembers(host.balancers, { clock, random, fence, log, signal }, (members) => {
    if (signal.aborted) return;
    writeMembers(paths.balancerHosts, members);
    hosts.setMembers(members);
  });
  void finding.catch((error: unknown) => log.error({ err: error }, 'the balancer hosts cannot be found'));
  return hosts;
}
