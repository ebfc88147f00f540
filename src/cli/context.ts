import type { Clock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Providers } from '../provision/providers.ts';
import type { Connection } from './connection/controller-connection.ts';
import type { Ui } from './ui.ts';

/** The context of every command's handler: all that a handler may access. */
export interface CommandContext {
  readonly connection: Connection;
  readonly ui: Ui;
  /** The providers as this machine sees them, without the controller. */
  readonly providers: () => Promise<Providers>;
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  /** The base of relative paths. */
  readonly cwd: string;
  /** Aborts at Ctrl-C. The exit code is then 130, whatever the command returns. */
  readonly signal: AbortSignal;
}
