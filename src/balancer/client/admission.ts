import type { BalancerConfig } from '../../domain/balancer-link.ts';
import { isInRanges, parseAddressRange, type AddressRange } from '../../shared/address-range.ts';
import type { ThreadMetrics } from '../metrics/thread-metrics.ts';

/** Decides by its address whether a client may connect. Headers of requests have no part in it. */
export class Admission {
  readonly #metrics: ThreadMetrics;
  readonly #proxies: readonly AddressRange[];
  /** Undefined: all. */
  readonly #allowed: readonly AddressRange[] | undefined;

  constructor({ allow, proxyProtocol }: Pick<BalancerConfig, 'allow' | 'proxyProtocol'>, metrics: ThreadMetrics) {
    this.#metrics = metrics;
    this.#proxies = rangesOf(proxyProtocol);
    this.#allowed = allow === null ? undefined : rangesOf(allow);
  }

  /** Whether connections from this address must begin with a header of the PROXY protocol, which is believed. */
  isProxy(address: string | undefined): boolean {
    return isInRanges(address ?? '', this.#proxies);
  }

  /** Whether a client may connect. Counts one that may not. */
  admits(address: string | undefined): boolean {
    if (this.#allowed === undefined || isInRanges(address ?? '', this.#allowed)) return true;
    this.#metrics.connectionRefused('address');
    return false;
  }
}

/** Valid ranges only: the configuration was checked. */
export const rangesOf = (texts: readonly string[]): readonly AddressRange[] => texts.flatMap((text) => parseAddressRange(text) ?? []);
