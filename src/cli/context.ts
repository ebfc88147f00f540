import type { Clock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Places } from '../provision/places.ts';
import type { Connection } from './connection.ts';
import type { Ui } from './ui.ts';

/** What every command's handler gets: all of the world that it may touch. */
export interface CommandContext {
  readonly connection: Connection;
  readonly ui: Ui;
  /** The places as seen from here, without the controller. */
  readonly places: () => Promise<Places>;
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  /** Where relative paths start. */
  readonly cwd: string;
  /** Aborts at Ctrl-C. The exit code is then 130, however the command ends. */
  readonly signal: AbortSignal;
}
