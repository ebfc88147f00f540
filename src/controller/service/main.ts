import { getuid } from 'node:process';
import { PlacementHistory } from '../../provision/machine.ts';
import { systemClock } from '../../shared/clock.ts';
import { svcHome } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { createLogger } from '../../shared/log.ts';
import { startLoop, type RunningLoop } from '../../shared/loop.ts';
import { homePaths, servicePaths } from '../../shared/paths.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { systemRandom } from '../../shared/random.ts';
import { loadConfig } from '../../spec/load-config.ts';
import type { Task } from '../../domain/task.ts';
import { openStore } from '../../store/open-store.ts';
import { tryProcessLock } from '../../store/process-lock.ts';
import { createProviderCache } from '../provider-cache.ts';
import { serveHello } from '../hello-socket.ts';
import { adoptReplicas } from './adopt-replicas.ts';
import { BalancerClient } from './balancer-client.ts';
import { probeReplica } from './probe-request.ts';
import { machineLoop } from './machine-sweep.ts';
import { Reconciler } from './reconciler.ts';
import { Rotation } from './rotation.ts';
import type { ServiceContext } from './service-context.ts';

/** The reconciler process of one service: `node service/main.ts NAME KEY`. Adopts what is there and keeps it as wanted. */
async function main(name: string, key: string): Promise<void> {
  const log = createLogger(`reconciler:${name}`);
  const clock = systemClock;
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const files = servicePaths(paths, key);
  // Two reconcilers would fight over one service; the loser of a race leaves without a word.
  const lock = tryProcessLock(`${files.dir}/reconciler.lock`);
  if (lock === undefined) return;
  const store = await openStore({ path: paths.database, clock });
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.once('SIGINT', () => stop.abort());

  const places = createProviderCache({ paths, clock, random: systemRandom, config: () => loadConfig(paths.config) });
  let loop: RunningLoop | undefined;
  const tasks = new Map<number, Task>();
  const balancer = new BalancerClient(files.balancerSocket, clock, log, {
    arrivals: (count) => reconciler.arrivals(count),
    suspect: (replicaId) => reconciler.suspect(replicaId),
  });
  const context: ServiceContext = {
    name,
    key,
    store,
    clock,
    log,
    files,
    rotation: new Rotation(balancer, randomHex(8)),
    history: new PlacementHistory(),
    ...places,
    async task(version) {
      const known = tasks.get(version) ?? (await store.services.version(name, version))?.task;
      if (known === undefined)
        throw new SvcError('SVC_SERVICE_NOT_FOUND', `Version ${version} of service '${name}' is not in the database.`);
      tasks.set(version, known);
      return known;
    },
    probe: (address, probe, signal) => probeReplica(address, probe, clock, signal),
    occupied: () => reconciler.occupied(),
    async changeService(decide) {
      for (;;) {
        const service = await store.services.get(name);
        const change = service === undefined || service.key !== key ? undefined : decide(service);
        if (service === undefined || change === undefined || (await store.services.update(service, change)) !== undefined) return;
      }
    },
    wake: () => loop?.wake(),
  };
  const reconciler = new Reconciler(context, balancer, () => stop.abort());
  await adoptReplicas(context, await store.replicas.list(name));
  const onError = (failed: string, error: unknown): void => log.error({ err: error, loop: failed }, 'a pass failed');
  loop = startLoop(reconciler, { clock, onError }, stop.signal);
  const machines = startLoop(
    machineLoop(context, (machine) => reconciler.machineLost(machine)),
    { clock, onError },
    stop.signal,
  );
  const hello = await serveHello(files.reconcilerSocket, () => context.wake());
  log.info('reconciling');
  await Promise.all([loop.ended, machines.ended, balancer.run(stop.signal)]);
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
