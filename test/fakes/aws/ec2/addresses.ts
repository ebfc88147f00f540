/** `10.0.3.7` as a number. */
export function ipNumber(text: string): number {
  return text.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

/** A number as `10.0.3.7`. */
export function ipText(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}

/** Whether a text is an IPv4 range with no bits beyond its mask, as AWS requires. */
export function isCidr(text: string): boolean {
  const match = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text);
  const [, address = '', bits = ''] = match ?? [];
  if (match === null || Number(bits) > 32 || address.split('.').some((octet) => Number(octet) > 255)) return false;
  return ipNumber(address) % 2 ** (32 - Number(bits)) === 0;
}

/** Allocates consecutive addresses, none twice. */
export class AddressPool {
  #next: number;

  /** Allocation starts after `before`. */
  constructor(before: string) {
    this.#next = ipNumber(before);
  }

  take(): string {
    this.#next += 1;
    // Skips .0 and .255: some systems take them for networks and broadcasts.
    while (this.#next % 256 === 0 || this.#next % 256 === 255) this.#next += 1;
    return ipText(this.#next);
  }
}

/** The public DNS name of an address at AWS. */
export function publicDnsName(address: string, region: string): string {
  const domain = region === 'us-east-1' ? 'compute-1' : `${region}.compute`;
  return `ec2-${address.replaceAll('.', '-')}.${domain}.amazonaws.com`;
}

/** The private DNS name of an address. */
export function privateDnsName(address: string, region: string): string {
  return `ip-${address.replaceAll('.', '-')}.${region === 'us-east-1' ? 'ec2' : `${region}.compute`}.internal`;
}
