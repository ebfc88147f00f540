import { getuid } from 'node:process';
import { systemClock } from '../../shared/clock.ts';
import { codeVersion } from '../../shared/code-version.ts';
import { svcHome } from '../../shared/env.ts';
import { createLogger } from '../../shared/log.ts';
import { homePaths, servicePaths } from '../../shared/paths.ts';
import { systemRandom } from '../../shared/random.ts';
import { loadConfig } from '../../spec/load-config.ts';
import { loadSshPools } from '../../spec/load-ssh-pools.ts';
import { openStore } from '../../store/open-store.ts';
import { tryProcessLock } from '../../store/process-lock.ts';
import { createPlaces } from '../../provision/places.ts';
import { readHost } from '../read-host.ts';
import { serveHello } from '../hello-socket.ts';
import { BalancerClient } from './balancer-client.ts';
import { probeReplica } from './probe-request.ts';
import { runService } from './run-service.ts';

/** The reconciler process of one service: `node service/main.ts NAME KEY`. Adopts what is there and keeps it as wanted. */
async function main(name: string, key: string): Promise<void> {
  const log = createLogger(`reconciler:${name}`);
  const clock = systemClock;
  const version = codeVersion();
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const files = servicePaths(paths, key);
  // Two reconcilers would fight over one service; the loser of a race leaves without a word.
  const lock = tryProcessLock(`${files.dir}/reconciler.lock`);
  if (lock === undefined) return;
  const store = await openStore({ path: paths.database, clock });
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.once('SIGINT', () => stop.abort());

  const places = createPlaces({
    paths,
    clock,
    random: systemRandom,
    config: () => loadConfig(paths.config),
    sshPools: () => loadSshPools(paths.sshPools),
  });
  let linked: Promise<void> = Promise.resolve();
  const service = await runService(
    {
      name,
      key,
      host: readHost(paths.controllerHost),
      store,
      clock,
      log,
      files,
      places,
      probe: (address, probed, signal) => probeReplica(address, probed, clock, signal),
      openBalancer(listeners) {
        const balancer = new BalancerClient(files.balancerSocket, clock, log, listeners);
        linked = balancer.run(stop.signal);
        return balancer;
      },
    },
    stop,
  );
  const hello = await serveHello(files.reconcilerSocket, { clock, version, onLine: () => service.wake() });
  log.info('reconciling');
  await Promise.all([service.ended, linked]);
  hello.close();
  await store.close();
  lock.release();
  log.info('ended');
}

const [, , name, key] = process.argv;
if (name === undefined || key === undefined) throw new Error('usage: service/main.ts NAME KEY');
await main(name, key);
// Drivers that were cancelled may still hold timers or sockets. What they could not write any more, the next process finds out anew.
process.exit(0);
