import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { homePaths } from '../shared/paths.ts';
import { svcVersion } from '../shared/version.ts';
import { commandEnd, createConnection } from './connection/connection.ts';
import { processStreams } from './streams.ts';
import { reportFailure, runCli, type World } from './run-cli.ts';

const streams = processStreams();
const interrupt = new AbortController();
// Only the first Ctrl-C: the second one ends the process immediately, even where an operation cannot be interrupted.
process.once('SIGINT', () => interrupt.abort());

const argv = process.argv.slice(2);
const paths = homePaths(svcHome(), process.getuid?.() ?? 0);
const world: World = {
  streams,
  clock: systemClock,
  env: envVar,
  cwd: process.cwd(),
  paths,
  version: svcVersion,
  connection: createConnection(paths, {
    clock: systemClock,
    signal: interrupt.signal,
    version: svcVersion,
    say: (text) => streams.stderr.write(`${text}\n`),
  }),
  providers: async () => (await import('./connection/open-providers.ts')).openProviders(paths, systemClock),
  signal: interrupt.signal,
};
// Only bugs reach this line: expected failures are thrown to the caller.
process.on('uncaughtException', (error) => process.exit(reportFailure(error, argv, world)));

process.exitCode = await runCli(argv, world);
commandEnd.abort();
