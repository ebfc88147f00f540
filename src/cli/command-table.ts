import type { Command, CommandGroup } from './command.ts';
import { clusterCommands } from './tables/cluster-commands.ts';
import { otherCommands } from './tables/other-commands.ts';
import { serveCommands } from './tables/serve-commands.ts';

/** Commands that have subcommands, in the order of help. */
export const commandGroups: readonly CommandGroup[] = [
  { name: 'serve', summary: 'Put services up, look after them, take them down' },
  { name: 'controller', summary: 'Start, stop and look at the controller' },
  { name: 'catalog', summary: 'Look after the tables of prices' },
];

/** Every command, in the order of help and docs. */
export const commands: readonly Command[] = [...serveCommands, ...clusterCommands, ...otherCommands];
