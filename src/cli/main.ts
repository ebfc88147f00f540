import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { homePaths } from '../shared/paths.ts';
import { svcVersion } from '../shared/version.ts';
import { createConnection } from './connection.ts';
import { processStreams } from './output.ts';
import { runCli } from './run-cli.ts';

const interrupt = new AbortController();
process.on('SIGINT', () => {
  // The second one ends at once what does not end by itself.
  if (interrupt.signal.aborted) process.exit(130);
  interrupt.abort();
});

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
