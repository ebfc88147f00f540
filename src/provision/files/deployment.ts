import type { ObjectStore } from '../../buckets/object-store.ts';
import { openStore } from '../../buckets/open-store.ts';
import type { BucketLocation } from '../../domain/bucket-location.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { type ProvisionLog, progressLine } from '../provision-log.ts';
import { planAddress, planFetch } from './address-source.ts';
import type { FileDelivery, LocalSource } from './delivery.ts';
import type { FetchPlan } from './fetch.ts';
import type { Manifest } from './manifest.ts';
import { type PublishProgress, publishTree } from './publish.ts';
import { writeFileAtomic, readJsonFile } from '../../shared/system/files.ts';
import { isObject } from '../../shared/json.ts';

/** The service or cluster that owns the files. */
export interface DeploymentOwner {
  /** Short and unique per owner: lower-case letters and digits. */
  readonly key: string;
  /** Of the bucket: the cloud's console shows its owner by them. */
  readonly tags: Readonly<Record<string, string>>;
  /** Absolute path of the file that records the buckets. It must exist until `remove` has settled. */
  readonly record: string;
  readonly clock: Clock;
  /** Tests replace it. */
  readonly open?: (location: BucketLocation, bucket: string) => Promise<ObjectStore>;
}

/** Objects expire after so many days if svc does not remove them. Services that run longer publish them again. */
const expireDays = 30;

const progressEveryMs = 2_000;

/** A published tree is checked again after this time, ms, far below the expiry. */
const trustedMs = 600_000;

/**
 * One owner's files in a bucket, which is created with the first publication and removed with the owner. It is recorded
 * before it is created, so that a crash leaves no unknown bucket.
 */
export class Deployment {
  readonly #owner: DeploymentOwner;
  readonly #stores = new Map<string, Promise<ObjectStore>>();
  readonly #published = new Map<string, { readonly at: number; readonly manifest: Promise<Manifest> }>();
  #isRemoved = false;

  constructor(owner: DeploymentOwner) {
    this.#owner = owner;
  }

  /** For a provider's bucket location; undefined where files are copied. */
  delivery(location: BucketLocation | undefined): FileDelivery {
    return {
      publish: async (source, log, signal) => (location === undefined ? undefined : this.#publish(location, source, log, signal)),
      fetchable: (address, signal) => planAddress(address, location, this.#owner.open ?? openStore, signal),
    };
  }

  /** They exist, or may exist. */
  get buckets(): readonly string[] {
    return readBuckets(this.#owner.record).map(({ bucket }) => bucket);
  }

  /** Removes all buckets and their content; succeeds when there is none. Later publications fail. */
  async remove(signal: AbortSignal): Promise<void> {
    this.#isRemoved = true;
    const { record, open = openStore } = this.#owner;
    for (const { bucket, place: location } of readBuckets(record)) {
      const store = await open(location, bucket);
      try {
        await store.deleteBucket({ signal });
      } finally {
        store.close();
      }
      writeBuckets(
        record,
        readBuckets(record).filter((one) => one.bucket !== bucket),
      );
    }
    for (const store of this.#stores.values()) await store.then((one) => one.close()).catch(() => undefined);
    this.#stores.clear();
    this.#published.clear();
  }

  async #publish(location: BucketLocation, source: LocalSource, log: ProvisionLog, signal: AbortSignal): Promise<FetchPlan> {
    const { clock } = this.#owner;
    for (;;) {
      const store = await this.#storeAt(location, signal);
      const id = `${store.bucket} ${source.name}`;
      const known = this.#published.get(id);
      const isOurs = known === undefined || clock.monotonic() - known.at > trustedMs;
      const manifest = isOurs
        ? publishTree(store, source.name, source.path, { onProgress: this.#progressReporter(store, log), signal })
        : known.manifest;
      if (isOurs) this.#published.set(id, { at: clock.monotonic(), manifest });
      else log(`Its files are published to ${store.uri('')} once for all`);
      try {
        return planFetch(store, await manifest);
      } catch (error) {
        if (this.#published.get(id)?.manifest === manifest) this.#published.delete(id);
        // The bucket may have been deleted outside svc: open it again, and create it if it is missing.
        this.#stores.delete(accountOf(location));
        // Another caller's cancelled publication must not fail this one.
        if (isOurs || signal.aborted) throw error;
      }
    }
  }

  /** One bucket serves all regions of an account. The first request decides its region. */
  async #storeAt(location: BucketLocation, signal: AbortSignal): Promise<ObjectStore> {
    if (this.#isRemoved) throw new SvcError('SVC_BUCKET', 'The files of a service that is being terminated are no longer published.');
    const name = accountOf(location);
    const opening = this.#stores.get(name) ?? this.#make(location, signal);
    this.#stores.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      if (this.#stores.get(name) === opening) this.#stores.delete(name);
      throw error;
    }
  }

  async #make(location: BucketLocation, signal: AbortSignal): Promise<ObjectStore> {
    const { record, key, tags, open = openStore } = this.#owner;
    const recorded = readBuckets(record);
    const known = recorded.find((one) => accountOf(one.place) === accountOf(location));
    // Bucket names are unique in the whole cloud. The random part avoids collisions with other accounts' buckets.
    const made: RecordedBucket = known ?? { bucket: `svc-${key}-${randomHex(8)}`, place: location };
    if (known === undefined) writeBuckets(record, [...recorded, made]);
    const store = await open(made.place, made.bucket);
    await store.createBucket({ tags, expireDays }, { signal });
    return store;
  }

  #progressReporter(store: ObjectStore, log: ProvisionLog): (progress: PublishProgress) => void {
    const { clock } = this.#owner;
    let reportedAt = clock.monotonic();
    return (progress) => {
      const isDone = progress.files === progress.totalFiles;
      if (!isDone && clock.monotonic() - reportedAt < progressEveryMs) return;
      reportedAt = clock.monotonic();
      log(`Publishing to ${store.uri('')}: ${progressLine(progress)}`);
    };
  }
}

function accountOf(location: BucketLocation): string {
  return location.kind === 's3' ? `s3 ${location.endpoint ?? ''} ${location.profile ?? ''}` : `directory ${location.path}`;
}

/** It exists, or was about to be created. */
interface RecordedBucket {
  readonly bucket: string;
  readonly place: BucketLocation;
}

/** None when the file does not exist. Throws SVC_STATE_CORRUPT when it is damaged. */
export function readBuckets(path: string): readonly RecordedBucket[] {
  const file = readJsonFile(path);
  if (file === undefined) return [];
  const { value } = file;
  if (Array.isArray(value) && value.every(isRecorded)) return value;
  throw new SvcError('SVC_STATE_CORRUPT', `${path} does not list buckets.`, {
    hint: 'Restore it from a copy: the buckets that it names are to be removed.',
  });
}

/** Replaces the file atomically. */
export function writeBuckets(path: string, buckets: readonly RecordedBucket[]): void {
  writeFileAtomic(path, JSON.stringify(buckets));
}

function isRecorded(value: unknown): value is RecordedBucket {
  if (!isObject(value) || typeof value['bucket'] !== 'string') return false;
  const { place: location } = value;
  if (!isObject(location)) return false;
  return location['kind'] === 'directory'
    ? typeof location['path'] === 'string'
    : location['kind'] === 's3' && typeof location['region'] === 'string';
}
