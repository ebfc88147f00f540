import type { Provider, ProviderCheck } from '../../src/providers/provider.ts';
import type { Providers, ProviderState } from '../../src/provision/providers.ts';

/** A check that found no problem. */
export const goodCheck: ProviderCheck = { enabled: true, summary: 'ready', remedies: [], details: [], sharedPorts: undefined };

/** Providers that are all enabled. */
export function statesOf(...providers: readonly Provider[]): readonly ProviderState[] {
  return providers.map((provider) => ({ name: provider.name, check: goodCheck, provider }));
}

/** A disabled provider with its reason. */
export function aDisabledProvider(name: string, summary: string): ProviderState {
  return { name, provider: undefined, check: { ...goodCheck, enabled: false, summary } };
}

/** All given providers, enabled. */
export function providersOf(...providers: readonly Provider[]): Providers {
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
