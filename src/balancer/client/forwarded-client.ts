import { isInRanges, type AddressRange } from '../../shared/address-range.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';

/** What is said to replicas of the client at the other end of a connection. `remoteAddress`: as the system gives it; undefined when it is gone. */
export function forwardedClient(
  remoteAddress: string | undefined,
  isSecure: boolean,
  trustedProxies: readonly AddressRange[],
): ForwardedClient {
  const address = plainAddress(remoteAddress);
  return { address, proto: isSecure ? 'https' : 'http', isTrusted: isInRanges(address, trustedProxies) };
}

/** IPv4 clients of a socket that takes both kinds look like `::ffff:10.0.0.1`. */
function plainAddress(address: string | undefined): string {
  if (address === undefined || address === '') return 'unknown';
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}
