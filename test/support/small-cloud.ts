import { defaultConfig } from '../../src/domain/config.ts';
import type { VmDriver, VmLaunchOrder, VmMachine, VmTraits } from '../../src/providers/vm/driver.ts';
import { CloudErrors, meaningByStatus } from '../../src/providers/vm/errors.ts';

/** An error of the small cloud's API. */
export class SmallCloudError extends Error {
  readonly code: string;
  readonly status: number | undefined;

  constructor(code: string, status: number | undefined, message: string) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/**
 * An in-memory cloud with the minimal API of a VM cloud, shared by all processes. A repeated request creates a second
 * machine. Lists are late, and cover all regions without a filter.
 */
export class SmallCloud {
  readonly machines = new Map<string, VmMachine>();
  /** Machines that lists do not show yet. */
  readonly unlisted = new Set<string>();
  /** Requests for machines, in order. */
  readonly launches: VmLaunchOrder<object>[] = [];
  readonly released: string[] = [];
  isFull = false;
  /** Number of next creations whose response is lost. */
  lostReplies = 0;
  /** Opens the driver as one process does. `change` overrides abilities of the test's cloud. */
  driver(traits: Partial<VmTraits> = {}, change: Partial<VmDriver<object>> = {}): VmDriver<object> {
    return {
      name: 'small',
      title: 'Small Cloud',
      abilities: { spot: false, customImages: false, openPorts: false, gpus: true },
      traits: {
        mainRegion: 'east',
        usualUser: 'ubuntu',
        instanceForm: /^m-\d+$/,
        labels: 'any',
        once: 'lock',
        listCovers: 'account',
        ...traits,
      },
      errors: new CloudErrors('Small Cloud', {
        read: (error) => (error instanceof SmallCloudError ? { code: error.code, status: error.status, text: error.message } : undefined),
        meaningOf: (code, status) => (code === 'FULL' ? { kind: 'capacity', about: 'offer' } : meaningByStatus(status)),
      }),
      account: () => Promise.resolve({ enabled: true, summary: 'an account', remedies: [], details: [], sharedPorts: undefined }),
      settings: () => Promise.resolve(defaultConfig.aws),
      chooseImage: (imageId) => (imageId === undefined ? {} : 'it has one image only'),
      launch: (order) => this.#launch(order),
      list: () => Promise.resolve([...this.machines.values()].filter(({ instanceId }) => !this.unlisted.has(instanceId))),
      remove: ({ instanceId }) => {
        this.machines.delete(instanceId);
        return Promise.resolve();
      },
      releaseShared: (region, { owner }) => {
        this.released.push(`${region} ${owner}`);
        return Promise.resolve();
      },
      ...change,
    };
  }

  /** The cloud terminates all machines. */
  preemptAll(): void {
    for (const [id, machine] of this.machines) this.machines.set(id, { ...machine, status: { state: 'gone', reason: 'preempted' } });
  }

  async #launch(order: VmLaunchOrder<object>) {
    await Promise.resolve();
    this.launches.push(order);
    if (this.isFull) throw new SmallCloudError('FULL', 503, 'There are none left.');
    const instanceId = `m-${this.launches.length}`;
    const host = '192.0.2.1';
    this.machines.set(instanceId, {
      region: order.offer.region,
      instanceId,
      status: { state: 'running' },
      isSpot: false,
      tags: order.tags('ubuntu'),
      publicHost: host,
      privateHost: host,
    });
    if (this.lostReplies > 0) {
      this.lostReplies -= 1;
      throw new SmallCloudError('TIMEOUT', undefined, 'No answer.');
    }
    return { instanceId, user: 'ubuntu' };
  }
}
