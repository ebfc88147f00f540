import { parseAddressRange } from '../../shared/address-range.ts';
import { SvcError } from '../../shared/errors.ts';
import type { MachineSpec } from '../provider.ts';
import type { VmSettings } from './driver.ts';

/** TCP ports, both inclusive, that are open to a range of addresses. */
export interface Opening {
  readonly from: number;
  readonly to: number;
  readonly cidr: string;
}

const allAddresses = ['0.0.0.0/0', '::/0'] as const;
const sshPort = 22;

/**
 * SSH is open to a replica's `clients`, or without any to `sshFrom`. Ports are open to `clients`; a controller's ports
 * without `clients` are endpoints and open to all addresses.
 */
export function openingsFor(spec: Pick<MachineSpec, 'ports' | 'clients' | 'role'>, sshFrom: readonly string[]): readonly Opening[] {
  const clients = spec.clients.map(asCidr);
  const sshRanges = spec.role === 'replica' && clients.length > 0 ? clients : sshFrom;
  const portCidrs = spec.role === 'controller' && clients.length === 0 ? allAddresses : clients;
  const openings = [
    ...sshOpenings(sshRanges),
    ...portRanges(spec.ports).flatMap(({ from, to }) => portCidrs.map((cidr) => ({ from, to, cidr }))),
  ];
  return openings.filter((one, index) => openings.findIndex((other) => isSame(one, other)) === index);
}

/** SSH, open to these ranges. */
export function sshOpenings(ranges: readonly string[]): readonly Opening[] {
  return ranges.map((range) => ({ from: sshPort, to: sshPort, cidr: asCidr(range) }));
}

/** Required openings that do not exist yet. */
export function missingOpenings(required: readonly Opening[], present: readonly Opening[]): readonly Opening[] {
  return required.filter((one) => !present.some((other) => other.cidr === one.cidr && other.from <= one.from && other.to >= one.to));
}

/** Appends the number of bits, which clouds require. Throws SVC_INTERNAL for an invalid address. */
export function asCidr(address: string): string {
  const range = parseAddressRange(address);
  if (range === undefined) throw new SvcError('SVC_INTERNAL', `'${address}' is not an address or a range of addresses.`);
  if (!address.includes('/')) return `${address}/${range.bits}`;
  // Clouds refuse ranges with bits beyond the prefix. The first form is IPv6.
  if (range.bits === 128) return address;
  const host = BigInt(range.bits - range.prefix);
  const network = (range.value >> host) << host;
  const bytes = [24n, 16n, 8n, 0n].map((shift) => String((network >> shift) & 255n));
  return `${bytes.join('.')}/${range.prefix}`;
}

interface NetworkFacts {
  readonly privateRanges: readonly string[];
  /** The address from which this machine connects. */
  readonly ownAddress: () => Promise<string>;
}

/** Source ranges of SSH connections to a machine, beside its clients. */
export async function sshSources(
  { role, clients }: Pick<MachineSpec, 'role' | 'clients'>,
  { sshFrom, useInternalIps }: VmSettings,
  { privateRanges, ownAddress }: NetworkFacts,
): Promise<readonly string[]> {
  if (sshFrom !== undefined) return sshFrom;
  if (useInternalIps) return privateRanges;
  return role === 'replica' && clients.length > 0 ? [] : [await ownAddress()];
}

const isSame = (a: Opening, b: Opening): boolean => a.from === b.from && a.to === b.to && a.cidr === b.cidr;

/** Merges neighbouring ports, because a firewall group has room for some sixty rules. */
function portRanges(ports: readonly number[]): readonly { readonly from: number; readonly to: number }[] {
  const ranges: { from: number; to: number }[] = [];
  for (const port of [...new Set(ports)].toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && last.to === port - 1) last.to = port;
    else ranges.push({ from: port, to: port });
  }
  return ranges;
}
