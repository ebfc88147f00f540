import type { HostedState } from './balancer-host.ts';

/** How a service does at one balancer host; undefined in `state` while that does not answer, or does not know the service yet. */
export interface EndpointAtHost {
  readonly host: string;
  readonly state: HostedState | undefined;
}

/** What is known of a hosted endpoint: whether anybody serves it, and if not, why. `unknown`: it may be coming up. */
export type EndpointVerdict = { readonly served: true } | { readonly served: false; readonly why: string } | { readonly served: 'unknown' };

/** Hosts that do not answer for so long are taken for gone, ms: longer than a leader needs to find them and a network to come back. */
export const silentHostsMs = 15_000;

/**
 * Whether any balancer host serves a service. `silentForMs`: for how long none of them has said anything of it. One that is starting keeps the verdict open, so
 * that a service is not called failed because its hosts are just being replaced. Pure.
 */
export function judgeEndpoint(hosts: readonly EndpointAtHost[], port: number, silentForMs: number): EndpointVerdict {
  if (hosts.some(({ state }) => state === 'listening')) return { served: true };
  if (hosts.some(({ state }) => state === 'starting')) return { served: 'unknown' };
  const names = (wanted: HostedState): string =>
    hosts
      .filter(({ state }) => state === wanted)
      .map(({ host }) => host)
      .join(', ');
  const [busy, failing] = [names('port-busy'), names('failing')];
  if (busy !== '')
    return { served: false, why: `Port ${port} of its endpoint is in use by another program at ${busy}; it is tried again.` };
  if (failing !== '') return { served: false, why: `Its balancer keeps dying at ${failing}; it is started again.` };
  if (silentForMs < silentHostsMs) return { served: 'unknown' };
  const who =
    hosts.length === 0 ? 'There is no balancer host' : `None of its balancer hosts answers (${hosts.map(({ host }) => host).join(', ')})`;
  return { served: false, why: `${who}; they are looked for all the time.` };
}
