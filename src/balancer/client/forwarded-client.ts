import { isInRanges, type AddressRange } from '../../shared/address-range.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';

/**
 * What the balancer reports to replicas about a client. `remoteAddress`: from the system, undefined once it is gone; or
 * from the PROXY header.
 */
export function forwardedClient(
  remoteAddress: string | undefined,
  isSecure: boolean,
  trustedProxies: readonly AddressRange[],
  subject?: string,
): ForwardedClient {
  const address = plainAddress(remoteAddress);
  return { address, proto: isSecure ? 'https' : 'http', isTrusted: isInRanges(address, trustedProxies), subject };
}

/** IPv4 clients of a dual-stack socket look like `::ffff:10.0.0.1`. */
export function plainAddress(address: string | undefined): string {
  if (address === undefined || address === '') return 'unknown';
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}
