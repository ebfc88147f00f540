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
import { storeSettings } from '../../store/store-settings.ts';
import { tryProcessLock } from '../../store/process-lock.ts';
import { createPlaces } from '../../provision/places.ts';
import { readHost } from '../read-host.ts';
import { serveHello } from '../hello-socket.ts';
import { peerHomes } from '../shared-homes.ts';
import { restorePatiently, serviceFiles } from '../service-files.ts';
import { lostLeaseExitCode } from '../leadership/exit-code.ts';
import { processFence, watchFence } from '../leadership/fence-file.ts';
import { termConfig } from '../leadership/term-config.ts';
import { BalancerClient } from './balancer-client.ts';
import { openFleet } from './open-fleet.ts';
import { probeReplica } from './probe-request.ts';
import { runService } from './run-service.ts';

/**
 * The reconciler process of one service: `node service/main.ts NAME KEY [TERM]`. Adopts what is there and keeps it as wanted; with a term, for as long as
 * its controller leads with that one.
 */
async function main(name: string, key: string, term: number | undefined): Promise<void> {
  const log = createLogger(`reconciler:${name}`);
  const clock = systemClock;
  const version = codeVersion();
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const files = servicePaths(paths, key);
  // Two reconcilers would fight over one service; the loser of a race leaves without a word.
  const lock = tryProcessLock(`${files.dir}/reconciler.lock`);
  if (lock === undefined) return;
  const fence = processFence(paths.fence, term, clock);
  watchFence(fence, clock, (error) => {
    log.error({ err: error }, 'the reconciler ends at once');
    process.exit(lostLeaseExitCode);
  });
  const store = await openStore({ ...storeSettings(paths, await loadConfig(paths.config)), clock, term });
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.once('SIGINT', () => stop.abort());

  const places = createPlaces({
    paths,
    clock,
    random: systemRandom,
    config: () => loadConfig(paths.config),
    sshPools: () => loadSshPools(paths.sshPools),
    fence,
    peerHomes: await peerHomes(store, paths, false),
  });
  const filesThere = restorePatiently(serviceFiles(store), { owner: key, dir: files.dir }, { clock, log, signal: stop.signal });
  const host = readHost(paths.controllerHost);
  let linked: Promise<unknown> = Promise.resolve();
  const service = await runService(
    {
      name,
      key,
      host,
      store,
      clock,
      log,
      files,
      filesThere,
      fence,
      places,
      probe: (address, probed, signal) => probeReplica(address, probed, clock, signal),
      openBalancer(listeners) {
        if (host?.balancers !== undefined) {
          const deps = { hosts: host.balancers, membersFile: paths.balancerHosts, key, term: term ?? 0, clock, log, signal: stop.signal };
          return openFleet(deps, listeners);
        }
        const balancer = new BalancerClient(files.balancerSocket, clock, log, listeners);
        linked = balancer.run(stop.signal);
        return balancer;
      },
    },
    stop,
  );
  const hello = await serveHello(files.reconcilerSocket, {
    clock,
    version,
    ...(term === undefined ? {} : { config: termConfig(term) }),
    onLine: () => service.wake(),
  });
  log.info('reconciling');
  await Promise.all([service.ended, linked]);
  hello.close();
  await store.close();
  lock.release();
  log.info('ended');
}

const [, , name, key, term] = process.argv;
if (name === undefined || key === undefined) throw new Error('usage: service/main.ts NAME KEY [TERM]');
await main(name, key, term === undefined ? undefined : Number(term));
// Drivers that were cancelled may still hold timers or sockets. What they could not write any more, the next process finds out anew.
process.exit(0);
