import { getuid } from 'node:process';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { systemClock } from '../../shared/clock.ts';
import { codeVersion } from '../../shared/version.ts';
import { withReserve } from '../../shared/system/disk-reserve.ts';
import { svcHome } from '../../shared/env.ts';
import { exitCodes } from '../../shared/error-codes.ts';
import { createLogger } from '../../shared/log.ts';
import { homePaths, servicePaths } from '../../shared/paths.ts';
import { identifyProcess } from '../../shared/system/process-identity.ts';
import { systemRandom } from '../../shared/random.ts';
import { loadConfig } from '../../spec/load-config.ts';
import { loadSshPools } from '../../spec/load-ssh-pools.ts';
import { openStore } from '../../store/open-store.ts';
import { storeSettings } from '../../store/store-settings.ts';
import { tryProcessLock } from '../../shared/system/process-lock.ts';
import { createProviders } from '../../provision/providers.ts';
import { readControllerHost } from '../read-controller-host.ts';
import { serveHello } from '../hello-socket.ts';
import { peerHomes } from '../shared-homes.ts';
import { restorePatiently, serviceFiles } from '../deploy/service-files.ts';
import { lostLeaseExitCode, termConfig } from '../leadership/lease-source.ts';
import { processFence, watchFence } from '../leadership/fence-file.ts';
import { BalancerClient, type BalancerPort } from './balancer-client.ts';
import { openFleet } from './balancer-fleet.ts';
import { measureReplica, tellEngine } from './engine-request.ts';
import { probeReplica } from './probe-request.ts';
import { runService } from './run-service.ts';

/** The reconciler of a service: `node service/main.ts NAME KEY [TERM]`. Ends when its controller loses TERM. */
async function main(name: string, key: string, term: number | undefined): Promise<void> {
  const log = createLogger(`reconciler:${name}`);
  const clock = systemClock;
  const version = codeVersion();
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const files = servicePaths(paths, key);
  // Two reconcilers would fight over one service. The loser of a race exits silently.
  const lock = tryProcessLock(files.reconcilerLock);
  if (lock === undefined) return;
  try {
    await withReserve(paths, () => writeFileAtomic(files.reconcilerIdentity, JSON.stringify(identifyProcess(process.pid))));
  } catch (error) {
    // Only a later controller needs the file, to end this process if it hangs. A full disk must not block removals.
    log.error({ err: error }, 'the identity of this process could not be written');
  }
  const fence = processFence(paths.fence, term, clock);
  watchFence(fence, clock, (error) => {
    log.error({ err: error }, 'the reconciler ends at once');
    process.exit(lostLeaseExitCode);
  });
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.once('SIGINT', () => stop.abort());
  const store = await openStore({ ...storeSettings(paths, await loadConfig(paths.config)), clock, term, mayAcceptReplacedFile: false });
  store.file?.watch(clock, (why) => {
    log.error({ why }, 'the state database was replaced: this reconciler ends, and another one is started on the file that is there now');
    // Nothing is closed: SQLite would write its log into the new file.
    process.exit(exitCodes.transient);
  });

  const providers = createProviders({
    paths,
    clock,
    random: systemRandom,
    config: () => loadConfig(paths.config),
    sshPools: () => loadSshPools(paths.sshPools),
    fence,
    peerHomes: await peerHomes(store, paths, false),
  });
  const filesRestored = restorePatiently(serviceFiles(store), { owner: key, dir: files.dir }, { clock, log, signal: stop.signal });
  const controllerHost = readControllerHost(paths.controllerHost);
  let linked: Promise<unknown> = Promise.resolve();
  const ownBalancer = (): BalancerPort => {
    const client = new BalancerClient(files.balancerSocket, clock, log);
    return {
      get view() {
        return client.view;
      },
      send: (command) => client.send(command),
      applied: (revision, timeoutMs) => client.applied(revision, timeoutMs),
      open: (listeners) => void (linked = client.run(listeners, stop.signal)),
    };
  };
  const fleet = { membersFile: paths.edgeProxies, key, term: term ?? 0, clock, log, signal: stop.signal };
  const service = await runService(
    {
      name,
      key,
      controllerHost,
      store,
      clock,
      log,
      files,
      filesRestored,
      fence,
      providers,
      probe: (address, probed, signal) => probeReplica(address, probed, clock, signal),
      measure: (address, path, signal) => measureReplica(address, path, clock, signal),
      tellEngine: (address, path, signal) => tellEngine(address, path, clock, signal),
      balancer: controllerHost?.balancers === undefined ? ownBalancer() : openFleet({ edgeProxies: controllerHost.balancers, ...fleet }),
    },
    stop,
  );
  const config = term === undefined ? {} : { config: termConfig(term) };
  const hello = await withReserve(paths, () =>
    serveHello(files.reconcilerSocket, { clock, version, ...config, onLine: () => service.wake() }),
  );
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
// Cancelled drivers may still hold timers or sockets. The next process determines again what they could not write.
process.exit(0);
