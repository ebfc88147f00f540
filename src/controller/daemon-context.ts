import type { Config } from '../domain/config.ts';
import type { RemoteControllerInfo } from '../domain/remote-controller-info.ts';
import type { Provider } from '../providers/provider.ts';
import type { ProviderState } from '../provision/providers.ts';
import type { Clock } from '../shared/clock.ts';
import type { Fence } from '../shared/fence.ts';
import type { Logger } from '../shared/log.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Random } from '../shared/random.ts';
import type { PortClaims } from './deploy/port-claims.ts';
import type { Store } from '../store/store.ts';

/** State and dependencies shared by the parts of the daemon. */
export interface DaemonContext {
  readonly paths: HomePaths;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly startedAt: number;
  readonly version: string;
  /** How many services this machine may run; see `domain/controller-placement.ts`. */
  readonly serviceLimit: number;
  /** Undefined on the user's own machine. */
  readonly controllerHost: RemoteControllerInfo | undefined;
  /** Term under which this daemon leads; undefined where controllers have no rivals. */
  readonly term: number | undefined;
  /** Permits provider calls while this daemon leads. */
  readonly fence: Fence;
  /** Keys of services being deployed: their folders exist before their records. */
  readonly creating: Set<string>;
  /** Ports of this machine that belong to services, across all homes. */
  readonly ports: PortClaims;
  config(): Promise<Config>;
  providers(): Promise<readonly Provider[]>;
  /** All providers, with the reason for each disabled one. */
  states(): Promise<readonly ProviderState[]>;
  provider(name: string): Promise<Provider>;
}
