import type { ObjectStore } from '../../buckets/object-store.ts';
import { openStore } from '../../buckets/open-store.ts';
import type { BucketPlace } from '../../domain/bucket-place.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { ProvisionLog } from '../provision-log.ts';
import { planAddress } from './address-source.ts';
import { readBuckets, writeBuckets, type RecordedBucket } from './bucket-record.ts';
import type { FileDelivery, LocalSource } from './delivery.ts';
import type { FetchPlan } from './fetch.ts';
import type { Manifest } from './manifest.ts';
import { progressLine } from './progress-line.ts';
import { publishTree, type PublishProgress } from './publish.ts';
import { planFetch } from './published-tree.ts';

/** Whose files these are. */
export interface DeploymentOwner {
  /** Short and unique, as of a service: lower-case letters and digits. */
  readonly key: string;
  /** Put on the bucket, so that its owner is seen in the cloud's own console. */
  readonly tags: Readonly<Record<string, string>>;
  /** Absolute path of the file that remembers which buckets there are. It has to stay until `remove` has settled. */
  readonly record: string;
  readonly clock: Clock;
  /** How buckets are opened; tests open others. */
  readonly open?: (place: BucketPlace, bucket: string) => Promise<ObjectStore>;
}

/** Objects that nobody removed go by themselves after so many days; a service that runs longer publishes them anew. */
const expireDays = 30;

/** How often progress is told, ms. */
const progressEveryMs = 2_000;

/** A published tree is looked for in the bucket again after so long, ms: well before it expires. */
const trustedMs = 600_000;

/**
 * The files of one service or cluster, in a bucket that is made when the first of them is published and goes with its owner. A bucket is on record
 * before it is made, so that a crash leaves none that nobody knows.
 */
export class Deployment {
  readonly #owner: DeploymentOwner;
  readonly #stores = new Map<string, Promise<ObjectStore>>();
  readonly #published = new Map<string, { readonly at: number; readonly manifest: Promise<Manifest> }>();
  #isRemoved = false;

  constructor(owner: DeploymentOwner) {
    this.#owner = owner;
  }

  /** How files get to machines of a place, given where it wants them published; undefined where files are copied. */
  delivery(place: BucketPlace | undefined): FileDelivery {
    return {
      publish: async (source, log, signal) => (place === undefined ? undefined : this.#publish(place, source, log, signal)),
      fetchable: (address, signal) => planAddress(address, place, this.#owner.open ?? openStore, signal),
    };
  }

  /** The buckets that exist, or may exist. */
  get buckets(): readonly string[] {
    return readBuckets(this.#owner.record).map(({ bucket }) => bucket);
  }

  /** Removes all buckets with what is in them; success when there is none. Nothing can be published afterwards. */
  async remove(signal: AbortSignal): Promise<void> {
    this.#isRemoved = true;
    const { record, open = openStore } = this.#owner;
    for (const { bucket, place } of readBuckets(record)) {
      const store = await open(place, bucket);
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

  async #publish(place: BucketPlace, source: LocalSource, log: ProvisionLog, signal: AbortSignal): Promise<FetchPlan> {
    const { clock } = this.#owner;
    for (;;) {
      const store = await this.#storeAt(place, signal);
      const id = `${store.bucket} ${source.name}`;
      const known = this.#published.get(id);
      const isOurs = known === undefined || clock.monotonic() - known.at > trustedMs;
      const manifest = isOurs
        ? publishTree(store, source.name, source.path, { onProgress: this.#teller(store, log), signal })
        : known.manifest;
      if (isOurs) this.#published.set(id, { at: clock.monotonic(), manifest });
      else log(`Its files are published to ${store.uri('')} once for all`);
      try {
        return planFetch(store, await manifest);
      } catch (error) {
        if (this.#published.get(id)?.manifest === manifest) this.#published.delete(id);
        // It may have been removed by somebody: it is looked at anew, and made again.
        this.#stores.delete(accountOf(place));
        // Who began it may have been called off: that is no reason for others.
        if (isOurs || signal.aborted) throw error;
      }
    }
  }

  /** The bucket at a place, made when there is none. One for all regions: the first that asked has it nearest. */
  async #storeAt(place: BucketPlace, signal: AbortSignal): Promise<ObjectStore> {
    if (this.#isRemoved) throw new SvcError('SVC_BUCKET', 'The files of what is being taken down are published no more.');
    const name = accountOf(place);
    const opening = this.#stores.get(name) ?? this.#make(place, signal);
    this.#stores.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      if (this.#stores.get(name) === opening) this.#stores.delete(name);
      throw error;
    }
  }

  async #make(place: BucketPlace, signal: AbortSignal): Promise<ObjectStore> {
    const { record, key, tags, open = openStore } = this.#owner;
    const recorded = readBuckets(record);
    const known = recorded.find((one) => accountOf(one.place) === accountOf(place));
    // Names of buckets are unique in the whole cloud: chance keeps them apart from others' of the same key.
    const made: RecordedBucket = known ?? { bucket: `svc-${key}-${randomHex(8)}`, place };
    if (known === undefined) writeBuckets(record, [...recorded, made]);
    const store = await open(made.place, made.bucket);
    await store.createBucket({ tags, expireDays }, { signal });
    return store;
  }

  #teller(store: ObjectStore, log: ProvisionLog): (progress: PublishProgress) => void {
    const { clock } = this.#owner;
    let toldAt = clock.monotonic();
    return (progress) => {
      const isDone = progress.files === progress.totalFiles;
      if (!isDone && clock.monotonic() - toldAt < progressEveryMs) return;
      toldAt = clock.monotonic();
      log(`Publishing to ${store.uri('')}: ${progressLine(progress)}`);
    };
  }
}

/** What tells stores apart in which one bucket would do for all regions. */
function accountOf(place: BucketPlace): string {
  return place.kind === 's3' ? `s3 ${place.endpoint ?? ''} ${place.profile ?? ''}` : `directory ${place.path}`;
}
