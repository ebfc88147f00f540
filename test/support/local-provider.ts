import { defaultConfig, type LocalConfig } from '../../src/domain/config.ts';
import type { MachineLimits } from '../../src/domain/machine-limits.ts';
import { openProvider } from '../../src/providers/registry.ts';
import type { MachineId, Provider } from '../../src/providers/provider.ts';
import type { Remote } from '../../src/remote/remote.ts';
import type { HomePaths } from '../../src/shared/paths.ts';
import { aMachineSpec, someResources } from './builders.ts';
import { expectNoLeaks, killProcessesOf } from './leaks.ts';
import { aProviderContext } from './provider-context.ts';
import { withTempHome } from './temp-home.ts';

/** This computer as a provider, in a new home. */
export interface LocalProviderFixture {
  readonly paths: HomePaths;
  readonly provider: Provider;
  /** The provider as another process would open it. */
  open(): Promise<Provider>;
  /** Changes the configuration of the home. */
  configure(change: Partial<LocalConfig>): void;
  machine(key: string, limits?: MachineLimits): Promise<{ readonly id: MachineId; readonly remote: Remote }>;
}

/** Runs `use` with a local provider. Afterwards it destroys every machine, and nothing may remain. */
export async function withLocalProvider(local: Partial<LocalConfig>, use: (fixture: LocalProviderFixture) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    let config = { ...defaultConfig, local: { ...defaultConfig.local, ...local } };
    const context = aProviderContext(home, { config: () => Promise.resolve(config) });
    const open = (): Promise<Provider> => openProvider('local', context);
    const provider = await open();
    try {
      await use({
        paths: context.paths,
        provider,
        open,
        configure: (change) => (config = { ...config, local: { ...config.local, ...change } }),
        async machine(key, limits) {
          const { offers, whyNone } = await provider.offers(someResources(), {});
          const [offer] = offers;
          if (offer === undefined) throw new Error(`no offer: ${whyNone}`);
          const id = await provider.create(
            offer,
            aMachineSpec({ tags: { 'svc-key': key }, ports: [8080], ...(limits && { limits }) }),
            key,
            {},
          );
          return { id, remote: provider.remote(id) };
        },
      });
      for (const { id } of await provider.list({}, {})) await provider.destroy(id, {});
      await expectNoLeaks(home);
    } finally {
      await killProcessesOf(home);
    }
  });
}
