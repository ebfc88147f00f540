import { isIPv4, isIPv6 } from 'node:net';
import { ipv6Bytes } from '../tcp-table.ts';

/** Of `network`, the first `bits` bits count. */
interface Route {
  readonly network: readonly number[];
  readonly bits: number;
  readonly metric: number;
  readonly isRefused: boolean;
}

/** Shorter prefixes count as default routes: VPNs split the whole address space in two (0.0.0.0/1, 128.0.0.0/1). */
const shortestBits = { v4: 7, v6: 4 };

/** Linux `RTF_REJECT`: this machine refuses the packets. `RTF_UP`: the route is active. */
const refusedFlag = 0x02_00;
const upFlag = 0x00_01;

/**
 * Whether a non-default route leads to an address, by /proc/net/route and /proc/net/ipv6_route. Pods and nodes have
 * private addresses: behind the default route, another network's host may have the same one, and svc must send it
 * nothing. Pure.
 */
export function hasOwnRoute(address: string, tables: { readonly v4: string; readonly v6: string }): boolean {
  const isV4 = isIPv4(address);
  if (!isV4 && !isIPv6(address)) return false;
  const bytes = isV4 ? address.split('.').map(Number) : ipv6Bytes(address);
  const routes = isV4 ? parseV4(tables.v4) : parseV6(tables.v6);
  const [best] = routes.filter((route) => matches(bytes, route)).toSorted((a, b) => b.bits - a.bits || a.metric - b.metric);
  return best !== undefined && !best.isRefused && best.bits > (isV4 ? shortestBits.v4 : shortestBits.v6);
}

/** proc(5): interface, destination and gateway in hex, least significant byte first, flags, …, metric, mask. */
function parseV4(table: string): readonly Route[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, destination = '', , flags = '0', , , metric = '0', mask = ''] = line.trim().split(/\s+/);
      if (!/^[0-9A-F]{8}$/i.test(destination) || !/^[0-9A-F]{8}$/i.test(mask) || !isUp(flags)) return [];
      const bits = hexBytes(mask).reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0);
      return [{ network: hexBytes(destination).toReversed(), bits, metric: Number(metric), isRefused: isRefused(flags) }];
    });
}

/** Destination and its prefix length in hex, source and its length, next hop, metric, counters, flags, interface. */
function parseV6(table: string): readonly Route[] {
  return table.split('\n').flatMap((line) => {
    const [destination = '', bits = '', , , , metric = '0', , , flags = '0'] = line.trim().split(/\s+/);
    if (!/^[0-9a-f]{32}$/i.test(destination) || !isUp(flags)) return [];
    return [
      { network: hexBytes(destination), bits: Number.parseInt(bits, 16), metric: Number.parseInt(metric, 16), isRefused: isRefused(flags) },
    ];
  });
}

function isUp(flags: string): boolean {
  return (Number.parseInt(flags, 16) & upFlag) !== 0;
}

function isRefused(flags: string): boolean {
  return (Number.parseInt(flags, 16) & refusedFlag) !== 0;
}

function hexBytes(hex: string): readonly number[] {
  return (hex.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
}

function matches(address: readonly number[], { network, bits }: Route): boolean {
  return address.every((byte, index) => {
    const counted = Math.min(8, Math.max(0, bits - 8 * index));
    const mask = (0xff << (8 - counted)) & 0xff;
    return (byte & mask) === ((network[index] ?? 0) & mask);
  });
}
