import type { Provider, ProviderCheck } from '../../src/providers/provider.ts';
import type { Places, PlaceState } from '../../src/provision/places.ts';

/** A check that found nothing wrong. */
export const goodCheck: ProviderCheck = { enabled: true, summary: 'ready', remedies: [], details: [], sharedPorts: undefined };

/** Places that are all enabled. */
export function statesOf(...providers: readonly Provider[]): readonly PlaceState[] {
  return providers.map((provider) => ({ name: provider.name, check: goodCheck, provider }));
}

/** A place that cannot be used, and why. */
export function aDisabledPlace(name: string, summary: string): PlaceState {
  return { name, provider: undefined, check: { ...goodCheck, enabled: false, summary } };
}

/** All given places, enabled. */
export function placesOf(...providers: readonly Provider[]): Places {
  return {
    async provider(name) {
      const found = providers.find((provider) => provider.name === name);
      if (found === undefined) throw new Error(`no place ${name}`);
      return Promise.resolve(found);
    },
    providers: () => Promise.resolve(providers),
    states: () => Promise.resolve(statesOf(...providers)),
  };
}
