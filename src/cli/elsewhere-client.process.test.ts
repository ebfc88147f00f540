import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aHealth, handlersWith } from '../../test/support/api.ts';
import { aControllerRecord, aMachineSpec, anOffer } from '../../test/support/builders.ts';
import { placesOf } from '../../test/support/places.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { serveApi } from '../api/server.ts';
import { defaultConfig } from '../domain/config.ts';
import { writeControllerRecord } from '../launcher/controller-record.ts';
import { FakePlace } from '../providers/fake/fake-place.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { MachineId, MachineStatus } from '../providers/provider.ts';
import type { Remote } from '../remote/remote.ts';
import { systemClock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { homePaths } from '../shared/paths.ts';
import { seededRandom } from '../shared/random.ts';
import { ElsewhereClient } from './elsewhere-client.ts';

const offer = anOffer({ provider: 'fake', region: 'r1' });

/** A place whose machines are this one: a socket there is one here. */
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
  readonly client: ElsewhereClient;
  readonly provider: NearProvider;
  readonly socket: string;
}

/** A controller that was brought up on a machine; whether it answers is the test's to say. */
async function withElsewhere(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const paths = homePaths(home, 0);
    const socket = join(home, 'there.sock');
    const provider = new NearProvider(new FakePlace(systemClock, seededRandom(1), [offer]));
    const machineId = await provider.create(offer, aMachineSpec(), 'c0ffee', {});
    const place = { provider: 'fake', region: 'r1', zone: null, instanceType: 'small', hourlyUsd: 0 };
    writeControllerRecord(paths.controllerRecord, aControllerRecord({ place, machineId, program: 'p', socket }));
    const client = new ElsewhereClient((onStep) => ({
      paths,
      places: placesOf(provider),
      config: () => Promise.resolve(defaultConfig),
      clock: systemClock,
      signal: new AbortController().signal,
      onStep,
    }));
    await use({ client, provider, socket });
  });
}

test('a controller that answers is reached over the way that is known, whatever its place says of its machine', async () => {
  await withElsewhere(async ({ client, provider, socket }) => {
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

test('none runs where nobody answers or the machine was stopped, and one that was stopped is not started to look', async () => {
  await withElsewhere(async ({ client, provider }) => {
    expect(await client.running()).toBeUndefined();
    provider.status = { state: 'stopped' };
    expect([await client.running(), await client.existing()]).toEqual([undefined, undefined]);
  });
});

test('a machine that is gone, and one that shows another host key, are told of', async () => {
  await withElsewhere(async ({ client, provider }) => {
    provider.failure = new SvcError('SVC_SSH', 'it does not answer');
    provider.status = { state: 'gone', reason: 'deleted' };
    await expect(client.running()).rejects.toMatchObject({ code: 'SVC_MACHINE_LOST' });
    provider.failure = new SvcError('SVC_HOST_KEY', 'it is another one');
    await expect(client.running()).rejects.toMatchObject({ code: 'SVC_HOST_KEY' });
  });
});
