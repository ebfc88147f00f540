import { systemClock } from '../../shared/clock.ts';
import { noFence } from '../../shared/fence.ts';
import { createLogger } from '../../shared/log.ts';
import { startLoop } from '../../shared/loop.ts';
import { systemRandom } from '../../shared/random.ts';
import { HealthChecks } from './health-checks.ts';
import { balancerPort, runProgram } from './edge-proxy-program.ts';
import { watchPods } from './pods.ts';

const log = createLogger('health-checker');
const clock = systemClock;

/** Several health checkers may run at once: then each label change may be made twice. Listens on no port. */
async function main(): Promise<void> {
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.once('SIGINT', () => stop.abort());
  const { signal } = stop;
  const { api, pods } = await watchPods(undefined, { clock, random: systemRandom, fence: noFence, log, signal });
  const checks = new HealthChecks({ api, namespace: api.namespace, pods: () => pods.items, port: balancerPort(), clock, log });
  const onError = (_: string, error: unknown): void => log.warn({ err: error }, 'a check of the edge proxies failed');
  await startLoop(checks, { clock, onError }, signal).ended;
}

await runProgram(main, log);
