import { flushCompileCache } from 'node:module';
import { systemClock } from '../shared/clock.ts';
import { exitCodes } from '../shared/error-codes.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import { createLogger } from '../shared/log.ts';
import { Balancer } from './balancer.ts';
import { readConfigFile } from './control/config-file.ts';
import { endWithPredecessor, readInherited, type Inherited } from './hand-over/successor.ts';

/** How long running requests may take after SIGTERM. */
const graceMs = 30_000;

const logger = createLogger('balancer');

async function main(configPath: string, inherited: Inherited | undefined): Promise<void> {
  if (inherited !== undefined && inherited.predecessors > 0) endWithPredecessor();
  const loaded = readConfigFile(configPath);
  const balancer = new Balancer(loaded, { configPath, clock: systemClock, logger });
  // Before the start: the balancer serves a moment before it reports so.
  const stop = (): void => {
    logger.info('Stopping: requests under way may end');
    void balancer.stop(graceMs).finally(() => process.exit(0));
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  try {
    await balancer.start(inherited);
  } catch (error) {
    if (!hasErrno(error, 'EADDRINUSE')) throw error;
    logger.error(`${messageOf(error)}: another process has the port or the control socket of service ${loaded.config.service}`);
    process.exit(exitCodes.conflict);
  }
  // At its end Node would write it too, but a killed process has none. With the cache, the next start takes half the time.
  flushCompileCache();
  void balancer.ended.then(() => process.exit(0));
}

process.on('uncaughtException', (error) => {
  logger.fatal({ err: error }, 'Uncaught exception');
  process.exit(exitCodes.internal);
});

try {
  const [, , configPath = '', sockets, predecessors] = process.argv;
  await main(configPath, readInherited(sockets, predecessors));
} catch (error) {
  logger.fatal(messageOf(error));
  process.exit(error instanceof SvcError ? exitCodes[error.kind] : exitCodes.internal);
}
