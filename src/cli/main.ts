import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { homePaths } from '../shared/paths.ts';
import { svcVersion } from '../shared/version.ts';
import { createConnection } from './connection.ts';
import { processStreams } from './output.ts';
import { runCli } from './run-cli.ts';

const interrupt = new AbortController();
// Once: the second one ends the process as the system does, also where something cannot be interrupted.
process.once('SIGINT', () => interrupt.abort());

const paths = homePaths(svcHome(), process.getuid?.() ?? 0);
const streams = processStreams();
process.exitCode = await runCli(process.argv.slice(2), {
  streams,
  clock: systemClock,
  env: envVar,
  cwd: process.cwd(),
  paths,
  version: svcVersion,
  connection: createConnection(paths, systemClock, interrupt.signal),
  signal: interrupt.signal,
});
