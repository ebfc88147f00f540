import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aHealth, handlersWith } from '../../../test/support/api.ts';
import { aControllerRecord, aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { providersOf } from '../../../test/support/providers.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { serveApi } from '../../api/server.ts';
import { defaultConfig } from '../../domain/config.ts';
import { writeControllerRecord } from '../../launcher/controller-record.ts';
import { FakeCloud } from '../../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import type { MachineId, MachineStatus } from '../../providers/provider.ts';
import type { Remote } from '../../remote/remote.ts';
import { systemClock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { homePaths } from '../../shared/paths.ts';
import { seededRandom } from '../../shared/random.ts';
import { RemoteControllerClient } from './remote-controller-connection.ts';

const offer = anOffer({ provider: 'fake', region: 'r1' });

/** A provider whose machines are this machine: a socket there is a local socket. */
class NearProvider extends FakeProvider {
  status: MachineStatus = { state: 'running' };
  failure: SvcError | undefined;

  override async inspect(ids: readonly MachineId[]): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    return new Map(ids.map((id) => [id, this.status]));
  }

  override remote(id: MachineId): Remote {
    const forwardSocket = (path: string): Promise<string> =>
      this.failure === undefined ? Promise.resolve(path) : Promise.reject(this.failure);
    return Object.assign(super.remote(id), { forwardSocket });
  }
}

interface World {
  readonly client: RemoteControllerClient;
  readonly provider: NearProvider;
  readonly socket: string;
}

/** A controller that was deployed to a machine. The test decides whether it answers. */
async function withRemoteController(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const paths = homePaths(home, 0);
    const socket = join(home, 'there.sock');
    const provider = new NearProvider(new FakeCloud(systemClock, seededRandom(1), [offer]));
    const machineId = await provider.create(offer, aMachineSpec(), 'c0ffee', {});
    const machine = { provider: 'fake', region: 'r1', zone: null, instanceType: 'small', hourlyUsd: 0 };
    writeControllerRecord(paths.controllerRecord, aControllerRecord({ machine, machineId, program: 'p', socket }));
    const client = new RemoteControllerClient((onStep) => ({
      paths,
      providers: providersOf(provider),
      config: () => Promise.resolve(defaultConfig),
      clock: systemClock,
      signal: new AbortController().signal,
      onStep,
    }));
    await use({ client, provider, socket });
  });
}

test('a controller that answers is used whatever the provider reports about its machine', async () => {
  await withRemoteController(async ({ client, provider, socket }) => {
    provider.status = { state: 'gone', reason: 'unknown' };
    const log = { error: () => undefined, debug: () => undefined };
    const server = await serveApi({
      socketPath: socket,
      handlers: handlersWith({ health: async () => aHealth }),
      log,
      clock: systemClock,
      version: '1.2.3',
    });
    try {
      for (const api of [await client.running(), await client.existing(), await client.get(() => undefined)])
        expect(await api?.call('health')).toMatchObject({ pid: aHealth.pid });
    } finally {
      await server.close();
    }
  });
});

test('an unresponsive or stopped machine counts as no controller, and is not started', async () => {
  await withRemoteController(async ({ client, provider }) => {
    expect(await client.running()).toBeUndefined();
    provider.status = { state: 'stopped' };
    expect([await client.running(), await client.existing()]).toEqual([undefined, undefined]);
  });
});

test('a lost machine and a changed host key are errors', async () => {
  await withRemoteController(async ({ client, provider }) => {
    provider.failure = new SvcError('SVC_SSH', 'it does not answer');
    provider.status = { state: 'gone', reason: 'deleted' };
    await expect(client.running()).rejects.toMatchObject({ code: 'SVC_MACHINE_LOST' });
    provider.failure = new SvcError('SVC_HOST_KEY', 'it is another one');
    await expect(client.running()).rejects.toMatchObject({ code: 'SVC_HOST_KEY' });
  });
});
