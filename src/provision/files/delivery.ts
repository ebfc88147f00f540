import type { ProvisionLog } from '../provision-log.ts';
import type { FetchPlan } from './fetch.ts';

/** Delivers files to machines without copying them from this machine to each of them. */
export interface FileDelivery {
  /** Publishes a local file or folder once for all machines. Undefined: copy it to each machine instead. */
  readonly publish: (source: LocalSource, log: ProvisionLog, signal: AbortSignal) => Promise<FetchPlan | undefined>;
  /** Plans the download of a file or folder at an `s3:` or `https:` address. */
  readonly fetchable: (address: string, signal: AbortSignal) => Promise<FetchPlan>;
}

/** A local file or folder that does not change any more. */
export interface LocalSource {
  /** Absolute */
  readonly path: string;
  /** Unique among everything that the owner publishes, such as `v1-workdir`: letters, digits and dashes. */
  readonly name: string;
}
