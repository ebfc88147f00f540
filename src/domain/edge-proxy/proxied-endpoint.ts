import type { ProxiedServiceState } from './edge-proxy.ts';

/** A service at one edge proxy. `state` is undefined while that does not answer or does not know the service yet. */
export interface EndpointAtProxy {
  readonly proxy: string;
  readonly state: ProxiedServiceState | undefined;
}

/** Whether any edge proxy serves the endpoint, and if not, why. `unknown`: it may be starting. */
type EndpointVerdict = { readonly served: true } | { readonly served: false; readonly why: string } | { readonly served: 'unknown' };

/** Edge proxies silent for this long count as lost, ms. A leader finds them, and a network recovers, in less time. */
export const silentProxiesMs = 15_000;

/**
 * Whether any edge proxy serves a service. `silentForMs`: how long none has reported on it. A starting edge proxy keeps
 * it `unknown`: otherwise a service would count as failed while its edge proxies are being replaced.
 */
export function judgeEndpoint(proxies: readonly EndpointAtProxy[], port: number, silentForMs: number): EndpointVerdict {
  if (proxies.some(({ state }) => state === 'listening')) return { served: true };
  if (proxies.some(({ state }) => state === 'starting')) return { served: 'unknown' };
  const names = (expected: ProxiedServiceState): string =>
    proxies
      .filter(({ state }) => state === expected)
      .map(({ proxy }) => proxy)
      .join(', ');
  const [busy, failing] = [names('port-busy'), names('failing')];
  if (busy !== '')
    return { served: false, why: `Port ${port} of its endpoint is in use by another program at ${busy}; it is tried again.` };
  if (failing !== '') return { served: false, why: `Its balancer keeps dying at ${failing}; it is started again.` };
  if (silentForMs < silentProxiesMs) return { served: 'unknown' };
  const who =
    proxies.length === 0 ? 'There is no edge proxy' : `None of its edge proxies answers (${proxies.map(({ proxy }) => proxy).join(', ')})`;
  return { served: false, why: `${who}; the controller keeps searching for them.` };
}
