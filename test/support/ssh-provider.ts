import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SshHost, SshPool } from '../../src/domain/config.ts';
import type { Resources } from '../../src/domain/task.ts';
import type { MachineId, MachineSpec, OfferList, Provider } from '../../src/providers/provider.ts';
import { SshProvider } from '../../src/providers/ssh/index.ts';
import type { OpenRemote } from '../../src/providers/ssh/remotes.ts';
import { systemClock, type Clock } from '../../src/shared/clock.ts';
import type { HomePaths } from '../../src/shared/paths.ts';
import { aMachineSpec, someResources } from './builders.ts';
import { aProviderContext } from './provider-context.ts';

/** A home with one pool `lab`, and its provider `ssh`. */
export interface SshProviderFixture {
  readonly paths: HomePaths;
  readonly provider: Provider;
  /** The provider as another process of the same home would open it. */
  readonly open: () => Provider;
  /** Sets the hosts of the pool. */
  readonly setHosts: (hosts: readonly SshHost[]) => void;
  readonly offers: (resources?: Partial<Resources>) => Promise<OfferList>;
  /** Creates a machine of the first offer. */
  readonly create: (key: string, resources?: Partial<Resources>, spec?: Partial<MachineSpec>) => Promise<MachineId>;
}

/** Options of such a provider. */
export interface SshProviderFixtureOptions {
  readonly home: string;
  readonly hosts: readonly SshHost[];
  /** Undefined: over SSH. */
  readonly open: OpenRemote | undefined;
  readonly clock?: Clock;
}

/** Opens the provider; it does not contact any SSH host yet. */
export function openSshProvider({ home, hosts, open: openRemote, clock = systemClock }: SshProviderFixtureOptions): SshProviderFixture {
  const context = aProviderContext(home, { clock, sshPools: () => Promise.resolve(pools) });
  const { paths } = context;
  let pools: readonly SshPool[] = [{ name: 'lab', file: paths.sshPools, hosts }];
  const open = (): Provider => new SshProvider(context, openRemote);
  const provider = open();
  const offers = (resources: Partial<Resources> = {}): Promise<OfferList> => provider.offers(someResources(resources), {});
  return {
    paths,
    provider,
    open,
    offers,
    setHosts: (next) => (pools = [{ name: 'lab', file: paths.sshPools, hosts: next }]),
    async create(key, resources = {}, spec = {}) {
      const { offers: found, whyNone } = await offers(resources);
      const [offer] = found;
      if (offer === undefined) throw new Error(`no offer: ${whyNone}`);
      return provider.create(offer, aMachineSpec({ tags: { 'svc-key': key, 'svc-service-key': 'k' }, ...spec }), key, {});
    },
  };
}

/** Makes an SSH host appear rebooted since it created its machines; their processes keep running. */
export function pretendReboot(hostHome: string): void {
  for (const file of globSync(join(hostHome, '.svc/machines/*/machine.json'))) {
    const record: unknown = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, `${JSON.stringify({ ...Object(record), bootId: 'an earlier one' })}\n`);
  }
}
