/** An IP address as a number of 32 or 128 bits. */
interface NumericAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/** Addresses with a common prefix: `10.0.0.0/8`, `fd00::/8`, or one address. */
export interface AddressRange extends NumericAddress {
  readonly prefix: number;
}

const ipv4InIpv6 = '::ffff:';

/** Whether a text is an address or a range that `parseAddressRange` reads. */
export function isAddressRange(text: string): boolean {
  return parseAddressRange(text) !== undefined;
}

/** Reads `ADDRESS` or `ADDRESS/BITS` in IPv4 or IPv6; undefined when it is neither. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const numeric = parseAddress(address);
  if (numeric === undefined || more.length > 0) return undefined;
  if (bits === undefined) return { ...numeric, prefix: numeric.bits };
  const prefix = /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  return prefix <= numeric.bits ? { ...numeric, prefix } : undefined;
}

/** Whether an address is in one of the ranges; false for no address. IPv4 in IPv6 form counts as IPv4. */
export function isInRanges(address: string, ranges: readonly AddressRange[]): boolean {
  if (ranges.length === 0) return false;
  const plain = address.toLowerCase().startsWith(ipv4InIpv6) ? address.slice(ipv4InIpv6.length) : address;
  const numeric = parseAddress(plain);
  if (numeric === undefined) return false;
  return ranges.some((range) => {
    const shift = BigInt(range.bits - range.prefix);
    return range.bits === numeric.bits && numeric.value >> shift === range.value >> shift;
  });
}

function parseAddress(text: string): NumericAddress | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): NumericAddress | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined;
  return { bits: 32, value: parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n) };
}

function parseIpv6(text: string): NumericAddress | undefined {
  const [front = '', back, ...more] = text.split('::');
  if (more.length > 0) return undefined;
  const before = groupsOf(front);
  const after = groupsOf(back ?? '');
  if (before === undefined || after === undefined) return undefined;
  const missing = 8 - before.length - after.length;
  if (back === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...before, ...Array.from({ length: missing }, () => 0), ...after];
  return { bits: 128, value: groups.reduce((sum, group) => sum * 65_536n + BigInt(group), 0n) };
}

function groupsOf(text: string): readonly number[] | undefined {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group)) ? groups.map((group) => Number.parseInt(group, 16)) : undefined;
}
