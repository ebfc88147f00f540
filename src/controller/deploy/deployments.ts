import { join } from 'node:path';
import { openStore as openBucket } from '../../buckets/open-store.ts';
import type { Provider } from '../../providers/provider.ts';
import type { FileDelivery } from '../../provision/files/delivery.ts';
import { Deployment, type DeploymentOwner } from '../../provision/files/deployment.ts';
import type { Clock } from '../../shared/clock.ts';
import { fenced, type Fence } from '../../shared/fence.ts';
import type { Store } from '../../store/store.ts';
import { bucketsRecord, serviceFiles, type ServiceFiles } from './service-files.ts';

interface DeploymentSubject {
  readonly name: string;
  readonly key: string;
  readonly clock: Clock;
  readonly store: Store;
  readonly fence: Fence;
}

/** The published files of a service; `dir` is its folder. */
export function serviceDeployment(dir: string, subject: DeploymentSubject): PublishedFiles {
  return new PublishedFiles(dir, { 'svc-service': subject.name, 'svc-service-key': subject.key }, subject);
}

/** The published files of a cluster; `dir` is its folder. */
export function clusterDeployment(dir: string, subject: DeploymentSubject): PublishedFiles {
  return new PublishedFiles(dir, { 'svc-cluster': subject.name }, subject);
}

/**
 * The published files of one service or cluster. Each bucket is recorded in the database before it is created, and the
 * record is fetched before use. So a leader knows the buckets that other controllers created.
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
    const open: DeploymentOwner['open'] = async (location, bucket) => {
      // The local record exists now; the bucket does not yet.
      await this.#keep();
      return fenced(await openBucket(location, bucket), fence, { free: ['uri', 'close'] });
    };
    this.#deployment = new Deployment({ key, tags, record: this.#record, clock, open });
  }

  /** How files reach machines of a provider in a region. */
  async delivery(provider: Provider, region: string | undefined): Promise<FileDelivery> {
    await this.#recall();
    return this.#deployment.delivery(region === undefined ? undefined : await provider.bucketLocation?.(region));
  }

  /** Removes all buckets with their contents, also those of other controllers. Afterwards nothing can be published. */
  async remove(signal: AbortSignal): Promise<void> {
    await this.#recall();
    await this.#deployment.remove(signal);
    await this.#keep();
  }

  #keep(): Promise<void> {
    return this.#files.save(this.#key, bucketsRecord, this.#record);
  }

  /** Runs once, before the first local write. */
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
