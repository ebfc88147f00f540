import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aStubProvider } from '../../../test/support/stub-provider.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { writeTree } from '../../../test/support/trees.ts';
import { systemClock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence, type Fence } from '../../shared/fence.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/store.ts';
import { serviceDeployment, type PublishedFiles } from './deployments.ts';

const { signal } = new AbortController();

/** Controllers that share a state, each with a folder of its own, and a provider whose buckets are folders. */
class World {
  readonly buckets: string;
  readonly store: Store;
  readonly #home: string;

  constructor(home: string, store: Store) {
    this.#home = home;
    this.buckets = join(home, 'buckets');
    this.store = { ...store, isShared: true };
    mkdirSync(this.buckets);
    writeTree(join(home, 'workdir'), { 'run.py': 'print()' });
  }

  /** The service's published files as a process of the named controller sees them. */
  at(controller: string, fence: Fence = noFence): PublishedFiles {
    const dir = this.dir(controller);
    mkdirSync(dir, { recursive: true });
    return serviceDeployment(dir, { name: 'chat', key: '0a1b2c3d', clock: systemClock, store: this.store, fence });
  }

  dir(controller: string): string {
    return join(this.#home, controller);
  }

  async publish(published: PublishedFiles): Promise<void> {
    const provider = aStubProvider({ bucketLocation: () => Promise.resolve({ kind: 'directory', path: this.buckets }) });
    const delivery = await published.delivery(provider, 'here');
    await delivery.publish({ path: join(this.#home, 'workdir'), name: 'v1-workdir' }, () => undefined, signal);
  }
}

async function withWorld(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const store = await openStore({ path: join(home, 'state.db'), clock: systemClock });
    try {
      await use(new World(home, store));
    } finally {
      await store.close();
    }
  });
}

test('the leader removes a bucket that another controller created, despite an older local record', async () => {
  await withWorld(async (world) => {
    mkdirSync(world.dir('b'));
    writeFileSync(join(world.dir('b'), 'buckets.json'), '[]');
    await world.publish(world.at('a'));
    expect(readdirSync(world.buckets)).toHaveLength(1);
    await world.at('b').remove(signal);
    expect(readdirSync(world.buckets)).toEqual([]);
  });
});

test('the next controller publishes into the existing bucket', async () => {
  await withWorld(async (world) => {
    await world.publish(world.at('a'));
    await world.publish(world.at('b'));
    expect(readdirSync(world.buckets)).toHaveLength(1);
  });
});

test('a bucket is created only after its record reached the shared database', async () => {
  await withWorld(async (world) => {
    const { files } = world.store;
    files.setTree = () => Promise.reject(new SvcError('SVC_DATABASE', 'The state database does not answer.'));
    await expect(world.publish(world.at('a'))).rejects.toMatchObject({ code: 'SVC_DATABASE' });
    expect(readdirSync(world.buckets)).toEqual([]);
  });
});

test('a controller that lost its lease creates, fills and removes no bucket', async () => {
  await withWorld(async (world) => {
    const lost: Fence = {
      check() {
        throw new SvcError('SVC_NOT_LEADER', 'This controller does not lead any more.');
      },
    };
    await expect(world.publish(world.at('a', lost))).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
    expect(readdirSync(world.buckets)).toEqual([]);
    await world.publish(world.at('b'));
    await expect(world.at('a', lost).remove(signal)).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
    expect(readdirSync(world.buckets)).toHaveLength(1);
  });
});
