import type { Config } from '../domain/config.ts';
import type { ControllerHost } from '../domain/controller-host.ts';
import type { Provider } from '../providers/provider.ts';
import type { PlaceState } from '../provision/places.ts';
import type { Clock } from '../shared/clock.ts';
import type { Fence } from '../shared/fence.ts';
import type { Logger } from '../shared/log.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Random } from '../shared/random.ts';
import type { Store } from '../store/store.ts';

/** What the parts of the daemon share. */
export interface DaemonContext {
  readonly paths: HomePaths;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly startedAt: number;
  readonly version: string;
  /** How many services this machine may run; see `domain/limits.ts`. */
  readonly serviceLimit: number;
  /** Undefined on the machine one sits at. */
  readonly host: ControllerHost | undefined;
  /** With which it leads; undefined where controllers have no rivals. */
  readonly term: number | undefined;
  /** Lets calls to places through while it leads. */
  readonly fence: Fence;
  /** Keys of services that are being put up: their folders are there before their records. */
  readonly creating: Set<string>;
  config(): Promise<Config>;
  /** The enabled places. */
  providers(): Promise<readonly Provider[]>;
  /** All places, with why those that are not enabled are not. */
  states(): Promise<readonly PlaceState[]>;
  provider(name: string): Promise<Provider>;
}
