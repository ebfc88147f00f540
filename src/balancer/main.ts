import { systemClock } from '../shared/clock.ts';
import { exitCodes } from '../shared/error-codes.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import { createLogger } from '../shared/log.ts';
import { Balancer } from './balancer.ts';
import { readConfigFile } from './config-file.ts';

/** How long requests under way may take after SIGTERM. */
const graceMs = 30_000;

const logger = createLogger('balancer');

async function main(configPath: string): Promise<void> {
  const loaded = readConfigFile(configPath);
  const balancer = new Balancer(loaded, { clock: systemClock, logger });
  try {
    await balancer.start();
  } catch (error) {
    if (!hasErrno(error, 'EADDRINUSE')) throw error;
    logger.error(`${messageOf(error)}: another process has the port or the control socket of service ${loaded.config.service}`);
    process.exit(exitCodes.conflict);
  }
  const stop = (): void => {
    logger.info('Stopping: requests under way may end');
    void balancer.stop(graceMs).finally(() => process.exit(0));
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

process.on('uncaughtException', (error) => {
  logger.fatal({ err: error }, 'Uncaught exception');
  process.exit(exitCodes.internal);
});

try {
  await main(process.argv[2] ?? '');
} catch (error) {
  logger.fatal(messageOf(error));
  process.exit(error instanceof SvcError ? exitCodes[error.kind] : exitCodes.internal);
}
