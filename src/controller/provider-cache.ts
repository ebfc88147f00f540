import type { Provider } from '../providers/provider.ts';
import { openProvider, providerNames, type ProviderContext } from '../providers/registry.ts';

/** The places, each opened when it is first needed. */
export interface ProviderCache {
  /** One place, enabled or not: a machine may outlive the enabling of its place. */
  provider(name: string): Promise<Provider>;
  /** All of them. */
  providers(): Promise<readonly Provider[]>;
}

/** Opens each place once; one that could not be opened is tried again the next time. */
export function createProviderCache(context: ProviderContext): ProviderCache {
  const opened = new Map<string, Promise<Provider>>();
  const provider = async (name: string): Promise<Provider> => {
    const opening = opened.get(name) ?? openProvider(name, context);
    opened.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      opened.delete(name);
      throw error;
    }
  };
  return { provider, providers: () => Promise.all(providerNames.map(provider)) };
}
