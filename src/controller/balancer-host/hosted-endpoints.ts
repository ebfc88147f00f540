import { judgeEndpoint } from '../../domain/hosted-endpoint.ts';
import type { Clock } from '../../shared/clock.ts';
import type { ServiceRecord } from '../../store/records.ts';
import type { Store } from '../../store/store.ts';
import { subjectEvent } from '../subject-event.ts';
import type { HostGroup } from './host-group.ts';

/** What watching over hosted endpoints needs. */
export interface HostedEndpointsDeps {
  readonly store: Pick<Store, 'services'>;
  readonly clock: Clock;
  readonly hosts: Pick<HostGroup, 'at'>;
  /** Whether another process of the service keeps dying. */
  readonly hasOtherFailure: (key: string) => boolean;
}

/** Records when no balancer host serves a service's endpoint, as is recorded of a balancer on this machine that keeps dying, and when one does again. */
export class HostedEndpoints {
  readonly #deps: HostedEndpointsDeps;
  /** Since when no host has said anything of a service, by its key. */
  readonly #silentSince = new Map<string, number>();
  readonly #failing = new Set<string>();

  constructor(deps: HostedEndpointsDeps) {
    this.#deps = deps;
  }

  /** Whether no balancer host serves it. */
  isFailing(key: string): boolean {
    return this.#failing.has(key);
  }

  forget(key: string): void {
    this.#silentSince.delete(key);
    this.#failing.delete(key);
  }

  /** Looks at all; gives the keys of those of which something was recorded. */
  async look(services: readonly ServiceRecord[]): Promise<readonly string[]> {
    const changed: string[] = [];
    for (const service of services) if (service.desired !== 'down' && (await this.#lookAt(service))) changed.push(service.key);
    return changed;
  }

  async #lookAt(service: ServiceRecord): Promise<boolean> {
    const { key, port } = service;
    const hosts = this.#deps.hosts.at(key).map(({ member, state }) => ({ host: member.name, state }));
    const verdict = judgeEndpoint(
      hosts,
      port,
      this.#silentForMs(
        key,
        hosts.every(({ state }) => state === undefined),
      ),
    );
    if (verdict.served === 'unknown') return false;
    if (verdict.served) {
      this.#failing.delete(key);
      if (!service.processesFailed || this.#deps.hasOtherFailure(key)) return false;
      return this.#write(service, { processesFailed: false }, 'A balancer host serves its endpoint again.');
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

  /** False when somebody else wrote meanwhile: the next look sees what. */
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
