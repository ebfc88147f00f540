import { DatabaseSync } from 'node:sqlite';
import { expect, test, vi } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { FakeRemote } from '../../providers/fake/fake-remote.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import type { ListedMachine } from '../../providers/provider.ts';
import { SvcError } from '../../shared/errors.ts';
import { idsLeftAfterRestore } from '../../store/open-store.ts';
import { Reconciler } from './reconciler.ts';

const machinesOf = (world: World): readonly string[] => world.cloud.living.map(({ id }) => id);

/** Starts the service on a database as it was before replica `firstLost` was launched. Returns its machines. */
async function restore(world: World, firstLost: number, beforeStart = (): void => undefined): Promise<readonly string[]> {
  await world.untilReady(2);
  const machines = machinesOf(world);
  await world.crash();
  const raw = new DatabaseSync(world.store.file?.path ?? '');
  raw.exec(`delete from replicas where id >= ${firstLost}; delete from events where replica_id >= ${firstLost}`);
  raw.prepare('update services set next_replica_id = ?').run(firstLost + idsLeftAfterRestore);
  raw.prepare('update database_identity set restored_at = ?').run(world.clock.now());
  raw.close();
  beforeStart();
  await world.start();
  return machines;
}

/** The adopted replicas, each with its state at that time. */
async function adopted(world: World): Promise<readonly string[]> {
  const events = await world.store.events.list({ subject: 'chat' });
  return events.flatMap(({ cause, replicaId, to }) => (cause === 'adopted' ? [`${replicaId} ${to}`] : []));
}

test('replicas newer than a restored database are adopted, not removed', async () => {
  await withWorld(async (world) => {
    const machines = await restore(world, 2);
    await world.clock.advance(90_000);
    await world.untilReady(2);
    expect(await adopted(world)).toEqual(['2 READY']);
    expect(machinesOf(world)).toEqual(machines);
  });
});

test('after a restore, an unresponsive machine delays neither the first pass nor other replicas', async () => {
  await withWorld(async (world) => {
    const asked = vi.spyOn(FakeRemote.prototype, 'address');
    try {
      const machines = await restore(world, 1, () => void asked.mockReturnValueOnce(new Promise(() => undefined)));
      await world.untilReady(2);
      expect(await adopted(world)).toEqual(['1 PROVISIONING', '2 READY']);
      expect((await world.replicas()).map(({ machineId }) => machineId)).toEqual(machines);
      expect(machinesOf(world)).toEqual(machines);
    } finally {
      asked.mockRestore();
    }
  });
});

test('after a restore, a replica listed later with a lower id is adopted', async () => {
  await withWorld(async (world) => {
    const listed = vi.spyOn(FakeProvider.prototype, 'list');
    try {
      const second = async (): Promise<readonly ListedMachine[]> => world.cloud.living.slice(1).map(({ id, tags }) => ({ id, tags }));
      const machines = await restore(world, 1, () => void listed.mockImplementationOnce(second));
      await world.clock.advance(130_000);
      await world.untilStates(['1 READY', '2 READY', '1001 TERMINATED'], 60_000);
      expect(await adopted(world)).toEqual(['2 READY', '1 READY']);
      expect(machinesOf(world)).toEqual(machines);
      expect(new Set(world.sets.at(-1))).toEqual(new Set([1, 2]));
    } finally {
      listed.mockRestore();
    }
  });
});

test('after a restore, a silent provider does not block launches; its replicas follow later', async () => {
  await withWorld(async (world) => {
    const listed = vi.spyOn(FakeProvider.prototype, 'list');
    try {
      const machines = await restore(world, 1, () => void listed.mockRejectedValue(new Error('no answer')));
      const launched = ['1001 READY', '1002 READY'];
      await world.untilStates(launched, 60_000);
      await world.clock.advance(600_000);
      expect(await world.states()).toEqual(launched);
      listed.mockRestore();
      await world.clock.advance(130_000);
      await world.untilStates(['1 READY', '2 READY', '1001 TERMINATED', '1002 TERMINATED'], 60_000);
      expect(machinesOf(world)).toEqual(machines);
      expect(new Set(world.sets.at(-1))).toEqual(new Set([1, 2]));
    } finally {
      listed.mockRestore();
    }
  });
});

test('after a restore, a replica whose adoption failed to be recorded is adopted later', async () => {
  await withWorld(async (world) => {
    const { replicas } = world.store;
    const add = replicas.add.bind(replicas);
    const machines = await restore(world, 1, () => {
      replicas.add = () => {
        replicas.add = add;
        return Promise.reject(new SvcError('SVC_DATABASE', 'The state database does not answer.'));
      };
    });
    await world.clock.advance(130_000);
    expect(await adopted(world)).toEqual(['2 READY', '1 READY']);
    expect(machinesOf(world)).toEqual(machines);
  });
});

test('after a restore, a replica is adopted although its service changes meanwhile', async () => {
  await withWorld(async (world) => {
    const { replicas } = world.store;
    const add = replicas.add.bind(replicas);
    const machines = await restore(world, 1, () => {
      replicas.add = () => {
        replicas.add = add;
        return Promise.resolve(undefined);
      };
    });
    expect(await adopted(world)).toEqual(['1 READY', '2 READY']);
    await world.clock.advance(130_000);
    expect(machinesOf(world)).toEqual(machines);
  });
});

test('machines of a service that the database lacks are not removed', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const machines = machinesOf(world);
    await world.crash();
    const raw = new DatabaseSync(world.store.file?.path ?? '');
    raw.exec('delete from replicas; delete from events; delete from services');
    raw.close();
    // The pass that would end the process is slow.
    const pass = vi.spyOn(Reconciler.prototype, 'tick').mockReturnValue(new Promise(() => undefined));
    try {
      await world.start();
      await world.clock.advance(200_000);
      expect(machinesOf(world)).toEqual(machines);
    } finally {
      pass.mockRestore();
    }
  });
});

test('on a database without the service, a starting reconciler leaves the endpoint set as it is', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    await world.crash();
    const raw = new DatabaseSync(world.store.file?.path ?? '');
    raw.exec('delete from replicas; delete from services');
    raw.close();
    const sent = world.sets.length;
    await world.start();
    await world.clock.advance(60_000);
    expect(world.sets.slice(sent)).toEqual([]);
    expect(world.cloud.living).toHaveLength(2);
  });
});
