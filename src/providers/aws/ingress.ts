import { parseAddressRange } from '../../shared/address-range.ts';
import { SvcError } from '../../shared/errors.ts';
import type { MachineSpec } from '../provider.ts';

/** One opening: TCP ports, both inclusive, from one range of addresses. */
export interface Opening {
  readonly from: number;
  readonly to: number;
  readonly cidr: string;
}

const anywhere = ['0.0.0.0/0', '::/0'] as const;
const sshPort = 22;

/**
 * What a machine's firewall lets in. SSH: only from where it is used, which is `clients` for a replica when they are given, else `sshFrom`.
 * Ports: only from `clients`; a controller's are its endpoints, which are for everybody when no clients are given.
 */
export function openingsFor(spec: Pick<MachineSpec, 'ports' | 'clients' | 'role'>, sshFrom: readonly string[]): readonly Opening[] {
  const clients = spec.clients.map(asCidr);
  const sshCidrs = spec.role === 'replica' && clients.length > 0 ? clients : sshFrom.map(asCidr);
  const portCidrs = spec.role === 'controller' && clients.length === 0 ? anywhere : clients;
  const openings = [
    ...sshCidrs.map((cidr) => ({ from: sshPort, to: sshPort, cidr })),
    ...portRanges(spec.ports).flatMap(({ from, to }) => portCidrs.map((cidr) => ({ from, to, cidr }))),
  ];
  return openings.filter((one, index) => openings.findIndex((other) => isSame(one, other)) === index);
}

/** Openings that are wanted and not there yet. */
export function missingOpenings(wanted: readonly Opening[], present: readonly Opening[]): readonly Opening[] {
  return wanted.filter((one) => !present.some((other) => other.cidr === one.cidr && other.from <= one.from && other.to >= one.to));
}

/** As AWS writes ranges: always with the number of bits. Throws SVC_INTERNAL for what is no address. */
export function asCidr(address: string): string {
  const range = parseAddressRange(address);
  if (range === undefined) throw new SvcError('SVC_INTERNAL', `'${address}' is not an address or a range of addresses.`);
  if (!address.includes('/')) return `${address}/${range.bits}`;
  // AWS refuses ranges with bits beyond the prefix, and means IPv4 by the first form.
  if (range.bits === 128) return address;
  const host = BigInt(range.bits - range.prefix);
  const network = (range.value >> host) << host;
  const bytes = [24n, 16n, 8n, 0n].map((shift) => String((network >> shift) & 255n));
  return `${bytes.join('.')}/${range.prefix}`;
}

const isSame = (a: Opening, b: Opening): boolean => a.from === b.from && a.to === b.to && a.cidr === b.cidr;

/** Neighbouring ports as one range each: a firewall group has room for some sixty rules. */
function portRanges(ports: readonly number[]): readonly { readonly from: number; readonly to: number }[] {
  const ranges: { from: number; to: number }[] = [];
  for (const port of [...new Set(ports)].toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && last.to === port - 1) last.to = port;
    else ranges.push({ from: port, to: port });
  }
  return ranges;
}
