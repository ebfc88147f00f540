import { hostname } from 'node:os';
import { join } from 'node:path';
import { getuid } from 'node:process';
import { systemClock } from '../../shared/clock.ts';
import { svcHome } from '../../shared/env.ts';
import { messageOf } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import { createLogger } from '../../shared/log.ts';
import { startLoop } from '../../shared/loop.ts';
import { homePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/prepare-home.ts';
import { systemRandom } from '../../shared/random.ts';
import { HostServer } from './host-server.ts';
import { HostedServices } from './hosted-services.ts';
import { Peers, type PeersDeps } from './peers.ts';
import { hostSettings } from './settings.ts';
import { readSharedKey } from './shared-key.ts';
import { TermMemory } from './term-memory.ts';
import { watchPods } from './watch-pods.ts';

/** How long until nobody sends new requests to a pod that was taken out of the Service, ms: every node has to hear of it. */
const forgetMs = 3_000;

const log = createLogger('balancer-host');
const clock = systemClock;

/** The process of a balancer host: serves what the leading controller tells it to, and goes on with that while there is none. */
async function main(): Promise<void> {
  // From the beginning: asked while it comes up, it must not die with its balancers at work.
  const end = told();
  const settings = hostSettings();
  const key = readSharedKey(settings.tokenFile);
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  prepareHome(paths);
  const stop = new AbortController();
  let isEnding = false;
  const isReady = (): boolean => services.isReady && !isEnding;
  let peers: Peers | undefined;
  const services: HostedServices = new HostedServices({ paths, address: settings.address, clock, log }, () => {
    server.tellState();
    void peers?.change();
  });
  const server = new HostServer({ key, services, terms: new TermMemory(join(paths.home, 'term')), clock, log, isReady });
  const port = await server.listen(settings.port, settings.address);
  services.recall();
  if (settings.hasPeers)
    peers = await watchPeers(port, () => ({ isReady: isReady(), isInformed: services.isInformed, isEnding }), stop.signal);
  log.info({ port }, 'the balancer host is there');

  await end;
  log.info('the balancer host ends: requests under way may end');
  isEnding = true;
  await peers?.change();
  if (peers !== undefined) await clock.sleep(forgetMs);
  await services.end();
  stop.abort();
  server.close();
}

/** Settles when this process is told to end. */
function told(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once('SIGTERM', resolve);
  process.once('SIGINT', resolve);
  return promise;
}

async function watchPeers(port: number, own: PeersDeps['own'], signal: AbortSignal): Promise<Peers> {
  const { api, pods } = await watchPods(undefined, { clock, random: systemRandom, fence: noFence, log, signal });
  const peers = new Peers({ api, namespace: api.namespace, pods: () => pods.items, name: hostname(), port, own, clock, log });
  const onError = (_: string, error: unknown): void => log.warn({ err: error }, 'a look at the other balancer hosts failed');
  startLoop(peers, { clock, onError }, signal);
  return peers;
}

try {
  await main();
} catch (error) {
  log.fatal({ err: error }, messageOf(error));
  process.exit(70);
}
process.exit(0);
