import type { ProvisionLog } from '../provision-log.ts';
import type { FetchPlan } from './fetch.ts';

/** How files get to machines other than by copying them to each. */
export interface FileDelivery {
  /** Makes a folder or file of this machine fetchable, once for all machines; undefined where it is to be copied to each machine instead. */
  readonly publish: (source: LocalSource, log: ProvisionLog, signal: AbortSignal) => Promise<FetchPlan | undefined>;
  /** What a machine has to do to have a file or folder that is at an `s3:` or `https:` address. */
  readonly fetchable: (address: string, signal: AbortSignal) => Promise<FetchPlan>;
}

/** Something that is on this machine and does not change any more. */
export interface LocalSource {
  /** Absolute */
  readonly path: string;
  /** Stands for it among all that its owner ever publishes, such as `v1-workdir`: letters, digits and dashes. */
  readonly name: string;
}
