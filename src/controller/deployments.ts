import { join } from 'node:path';
import { openStore as openBucket } from '../buckets/open-store.ts';
import type { Provider } from '../providers/provider.ts';
import type { FileDelivery } from '../provision/files/delivery.ts';
import { Deployment, type DeploymentOwner } from '../provision/files/deployment.ts';
import type { Clock } from '../shared/clock.ts';
import { fenced, type Fence } from '../shared/fence.ts';
import type { Store } from '../store/store.ts';
import { bucketsRecord, serviceFiles, type ServiceFiles } from './service-files.ts';

/** Whose buckets are meant. */
export interface DeploymentSubject {
  /** Of a service or a cluster. */
  readonly name: string;
  readonly key: string;
  readonly clock: Clock;
  readonly store: Store;
  readonly fence: Fence;
}

/** The published files of a service. `dir` is the folder that holds everything of it. */
export function serviceDeployment(dir: string, subject: DeploymentSubject): PublishedFiles {
  return new PublishedFiles(dir, { 'svc-service': subject.name, 'svc-service-key': subject.key }, subject);
}

/** The published files of a cluster. */
export function clusterDeployment(dir: string, subject: DeploymentSubject): PublishedFiles {
  return new PublishedFiles(dir, { 'svc-cluster': subject.name }, subject);
}

/**
 * The published files of one service or cluster. Where controllers share their state, whoever leads knows of every bucket that another one made: the record of
 * them is kept in the database before one is made, and fetched from there before it is relied on.
 */
export class PublishedFiles {
  readonly #deployment: Deployment;
  readonly #files: ServiceFiles;
  readonly #key: string;
  readonly #record: string;
  #recalled: Promise<void> | undefined;

  constructor(dir: string, tags: DeploymentOwner['tags'], { key, clock, store, fence }: DeploymentSubject) {
    this.#files = serviceFiles(store);
    this.#key = key;
    this.#record = join(dir, bucketsRecord);
    const open: DeploymentOwner['open'] = async (place, bucket) => {
      // It is on record here by now, and not made yet.
      await this.#keep();
      return fenced(await openBucket(place, bucket), fence, { free: ['uri', 'close'] });
    };
    this.#deployment = new Deployment({ key, tags, record: this.#record, clock, open });
  }

  /** How files get to machines of a place in a region. */
  async delivery(provider: Provider, region: string | undefined): Promise<FileDelivery> {
    await this.#recall();
    return this.#deployment.delivery(region === undefined ? undefined : await provider.bucketPlace?.(region));
  }

  /** Removes all buckets with what is in them, whichever controller made them; success when there is none. Nothing can be published afterwards. */
  async remove(signal: AbortSignal): Promise<void> {
    await this.#recall();
    await this.#deployment.remove(signal);
    await this.#keep();
  }

  #keep(): Promise<void> {
    return this.#files.save(this.#key, bucketsRecord, this.#record);
  }

  /** Once, and before anything is written here. */
  async #recall(): Promise<void> {
    this.#recalled ??= this.#files.renew(this.#key, bucketsRecord, this.#record);
    try {
      await this.#recalled;
    } catch (error) {
      this.#recalled = undefined;
      throw error;
    }
  }
}
