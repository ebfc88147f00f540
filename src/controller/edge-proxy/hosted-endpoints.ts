import { judgeEndpoint } from '../../domain/edge-proxy/proxied-endpoint.ts';
import type { Clock } from '../../shared/clock.ts';
import { type ServiceRecord, subjectEvent } from '../../domain/records.ts';
import type { Store } from '../../store/store.ts';
import type { EdgeProxyGroup } from './edge-proxy-group.ts';

interface HostedEndpointsDeps {
  readonly store: Pick<Store, 'services'>;
  readonly clock: Clock;
  readonly proxies: Pick<EdgeProxyGroup, 'at'>;
  /** Whether another process of the service keeps crashing. */
  readonly hasOtherFailure: (key: string) => boolean;
}

/** Records when no edge proxy serves a service's endpoint, and when one serves it again. */
export class HostedEndpoints {
  readonly #deps: HostedEndpointsDeps;
  /** Since when no edge proxy has reported a service, by the service's key. */
  readonly #silentSince = new Map<string, number>();
  readonly #failing = new Set<string>();

  constructor(deps: HostedEndpointsDeps) {
    this.#deps = deps;
  }

  isFailing(key: string): boolean {
    return this.#failing.has(key);
  }

  forget(key: string): void {
    this.#silentSince.delete(key);
    this.#failing.delete(key);
  }

  /** Checks all services. Returns the keys of those with a recorded change. */
  async checkAll(services: readonly ServiceRecord[]): Promise<readonly string[]> {
    const changed: string[] = [];
    for (const service of services) if (service.desired !== 'down' && (await this.#check(service))) changed.push(service.key);
    return changed;
  }

  async #check(service: ServiceRecord): Promise<boolean> {
    const { key, port } = service;
    const proxies = this.#deps.proxies.at(key).map(({ member, state }) => ({ proxy: member.name, state }));
    const verdict = judgeEndpoint(
      proxies,
      port,
      this.#silentForMs(
        key,
        proxies.every(({ state }) => state === undefined),
      ),
    );
    if (verdict.served === 'unknown') return false;
    if (verdict.served) {
      this.#failing.delete(key);
      if (!service.processesFailed || this.#deps.hasOtherFailure(key)) return false;
      return this.#write(service, { processesFailed: false }, 'An edge proxy serves its endpoint again.');
    }
    this.#failing.add(key);
    const { why } = verdict;
    if (service.processesFailed && service.state === 'CONTROLLER_FAILED' && service.reason === why) return false;
    return this.#write(service, { processesFailed: true, state: 'CONTROLLER_FAILED', reason: why }, why);
  }

  #silentForMs(key: string, isSilent: boolean): number {
    const now = this.#deps.clock.monotonic();
    const since = isSilent ? (this.#silentSince.get(key) ?? now) : now;
    if (isSilent) this.#silentSince.set(key, since);
    else this.#silentSince.delete(key);
    return now - since;
  }

  /** Returns false when another writer changed the record meanwhile: the next check reads the change. */
  async #write(
    service: ServiceRecord,
    change: Partial<Pick<ServiceRecord, 'processesFailed' | 'state' | 'reason'>>,
    message: string,
  ): Promise<boolean> {
    const { store, clock } = this.#deps;
    const to = change.state === undefined || change.state === service.state ? {} : { from: service.state, to: change.state };
    const cause = change.processesFailed === true ? 'endpoint-down' : 'endpoint-up';
    const event = subjectEvent(service, { at: clock.now(), ...to, cause, message });
    return (await store.services.update(service, change, event)) !== undefined;
  }
}
