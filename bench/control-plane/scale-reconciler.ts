import { pino } from 'pino';
import { FakeCloud } from '../../src/providers/fake/fake-cloud.ts';
import { FakeProvider } from '../../src/providers/fake/index.ts';
import type { MachineId } from '../../src/providers/provider.ts';
import type { Remote } from '../../src/remote/remote.ts';
import { systemClock as clock } from '../../src/shared/clock.ts';
import { noFence } from '../../src/shared/fence.ts';
import { homePaths, servicePaths } from '../../src/shared/paths.ts';
import { seededRandom } from '../../src/shared/random.ts';
import type { ReplicaAddress } from '../../src/shared/replica-address.ts';
import { openStore } from '../../src/store/open-store.ts';
import { BalancerClient } from '../../src/controller/service/balancer-client.ts';
import { measureReplica, tellEngine } from '../../src/controller/service/engine-request.ts';
import { probeReplica } from '../../src/controller/service/probe-request.ts';
import { runService } from '../../src/controller/service/run-service.ts';
import { anOffer } from '../../test/support/builders.ts';
import { providersOf } from '../../test/support/providers.ts';
import { loopbackHost } from './scale-replicas.ts';

// The reconciler of `scale.ts`, over machines in its memory: `node scale-reconciler.ts HOME KEY`.
const [, , home = '', key = ''] = process.argv;

class LoopbackProvider extends FakeProvider {
  override remote(id: MachineId): Remote {
    const remote = super.remote(id);
    remote.address = (port): Promise<ReplicaAddress> =>
      Promise.resolve({ kind: 'tcp', host: loopbackHost(Number(id.slice('fake-'.length))), port });
    return remote;
  }
}

const offer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 1 });
const cloud = new FakeCloud(clock, seededRandom(1), [offer]);
// As a fast cloud: each call takes 50 ms, and a machine boots within 2 s.
cloud.conduct.callMs = 50;
cloud.conduct.bootMs = 2_000;

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
const files = servicePaths(homePaths(home, 0), key);
const log = pino({ level: 'error' });
const client = new BalancerClient(files.balancerSocket, clock, log);
const store = await openStore({ path: `${home}/state.db`, clock });
const service = await runService(
  {
    name: 'chat',
    key,
    controllerHost: undefined,
    store,
    clock,
    log,
    files,
    fence: noFence,
    providers: providersOf(new LoopbackProvider(cloud)),
    probe: (address, probed, signal) => probeReplica(address, probed, clock, signal),
    measure: (address, path, signal) => measureReplica(address, path, clock, signal),
    tellEngine: (address, path, signal) => tellEngine(address, path, clock, signal),
    balancer: {
      get view() {
        return client.view;
      },
      send: (command) => client.send(command),
      applied: (revision, timeoutMs) => client.applied(revision, timeoutMs),
      open: (listeners) => void client.run(listeners, stop.signal),
    },
  },
  stop,
);
process.on('SIGUSR2', () => service.wake());
await service.ended;
await store.close();
process.exit(0);
