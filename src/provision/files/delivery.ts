import type { ProvisionLog } from '../provision-log.ts';
import type { FetchPlan } from './fetch.ts';

/** Delivers files without copying them from this machine to each other one. */
export interface FileDelivery {
  /** Publishes a local file or folder once for all machines. Undefined: copy it to each machine. */
  readonly publish: (source: LocalSource, log: ProvisionLog, signal: AbortSignal) => Promise<FetchPlan | undefined>;
  /** Plans the download of an `s3:` or `https:` address. */
  readonly fetchable: (address: string, signal: AbortSignal) => Promise<FetchPlan>;
}

/** A local file or folder that does not change any more. */
export interface LocalSource {
  /** Absolute path. */
  readonly path: string;
  /** Letters, digits and dashes, such as `v1-workdir`; unique among all that the owner publishes. */
  readonly name: string;
}
