import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { homePaths } from '../shared/paths.ts';
import { svcVersion } from '../shared/version.ts';
import { createConnection } from './connection.ts';
import { processStreams } from './output.ts';
import { reportFailure, runCli, type World } from './run-cli.ts';

const interrupt = new AbortController();
// Once: the second one ends the process as the system does, also where something cannot be interrupted.
process.once('SIGINT', () => interrupt.abort());

const argv = process.argv.slice(2);
const paths = homePaths(svcHome(), process.getuid?.() ?? 0);
const world: World = {
  streams: processStreams(),
  clock: systemClock,
  env: envVar,
  cwd: process.cwd(),
  paths,
  version: svcVersion,
  connection: createConnection(paths, systemClock, interrupt.signal, svcVersion),
  places: async () => (await import('./open-places.ts')).openPlaces(paths, systemClock),
  signal: interrupt.signal,
};
// Only a bug comes here: what a command expects to fail is thrown to whoever waits for it.
process.on('uncaughtException', (error) => process.exit(reportFailure(error, argv, world)));

process.exitCode = await runCli(argv, world);
