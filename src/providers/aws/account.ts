import { regionsOf } from '../../catalog/price-table.ts';
import type { PriceTables } from '../../catalog/price-tables.ts';
import type { AwsConfig } from '../../domain/config.ts';
import type { ProviderContext } from '../registry.ts';
import type { AwsClients, Ec2 } from './client.ts';
import { inEveryRegion } from './controller-heritage.ts';
import { credentialFilesStamp } from './credential-sources.ts';
import { guard } from './guard.ts';

/** Where global services are asked when the configuration names no region. */
export const mainRegion = 'us-east-1';

/** What is done in one region. */
export type RegionWork<T> = (ec2: Ec2, region: string) => Promise<T>;

/** The account that the configuration names: whom we ask, and in which regions. */
export class AwsAccount {
  readonly #context: Pick<ProviderContext, 'config' | 'fence'>;
  readonly #tables: PriceTables;
  #clients: { readonly by: string; readonly loading: Promise<AwsClients> } | undefined;

  constructor(context: Pick<ProviderContext, 'config' | 'fence'>, tables: PriceTables) {
    this.#context = context;
    this.#tables = tables;
  }

  /** What is configured now. */
  async config(): Promise<AwsConfig> {
    return (await this.#context.config()).aws;
  }

  /** The SDK is large: it is loaded when AWS is first asked. Clients are made anew when credentials changed, so that a renewed login counts at once. */
  clients({ profile }: Pick<AwsConfig, 'profile'>): Promise<AwsClients> {
    const by = JSON.stringify([profile, credentialFilesStamp()]);
    if (this.#clients?.by === by) return this.#clients.loading;
    const loading = import('./client.ts').then((sdk) => new sdk.AwsClients(profile, this.#context.fence));
    this.#clients = { by, loading };
    return loading;
  }

  /** EC2 of a region. */
  async ec2(region: string, signal: AbortSignal | undefined): Promise<Ec2> {
    return (await this.clients(await this.config())).ec2(region, signal);
  }

  /** Does something in each region at once; throws the first failure when all are through. */
  async inRegions<T>(
    regions: readonly string[],
    doing: string,
    signal: AbortSignal | undefined,
    work: RegionWork<T>,
  ): Promise<readonly T[]> {
    const results = await Promise.allSettled(regions.map((region) => this.#inRegion(region, doing, signal, work)));
    return results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  }

  /** Does something in every region that there may be, as `inEveryRegion` does. */
  async everywhere<T>(doing: string, signal: AbortSignal | undefined, work: RegionWork<T>): Promise<readonly T[]> {
    const [table, config] = await Promise.all([this.#tables.table('aws'), this.config()]);
    const regions = new Set([...(table === undefined ? [] : regionsOf(table)), ...(config.regions ?? []), mainRegion]);
    return inEveryRegion([...regions], (region) => this.#inRegion(region, doing, signal, work));
  }

  #inRegion<T>(region: string, doing: string, signal: AbortSignal | undefined, work: RegionWork<T>): Promise<T> {
    return guard(`${doing} ${region}`, signal, async () => work(await this.ec2(region, signal), region));
  }
}
