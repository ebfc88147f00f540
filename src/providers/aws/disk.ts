import type { DiskKind } from '../../catalog/disk-prices.ts';
import { PlaceRefusal } from '../place-refusal.ts';

/** A root disk as EBS is asked for it. */
export interface RootDisk {
  readonly sizeGb: number;
  readonly type: 'standard' | 'gp3' | 'io2';
  /** Operations a second; undefined where the type has no choice. */
  readonly iops: number | undefined;
  /** MiB a second. */
  readonly throughput: number | undefined;
}

/**
 * The disk of a kind (`DiskPrices.kind`) for a size. Never smaller than the image; operations and throughput are kept within what EBS allows for
 * the size (gp3: 3,000 to 500 per GB, and MiB/s a quarter of that at most; io2: 1,000 per GB;
 * https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html). Throws a refusal of the place for a kind that is not known.
 */
export function rootDisk(wantedGb: number, kind: DiskKind | undefined, imageGb: number): RootDisk {
  const sizeGb = Math.max(Math.ceil(wantedGb), imageGb, 4);
  const { volume = 'gp3', iops, throughputMbs } = kind ?? {};
  if (volume === 'gp3') {
    const operations = Math.max(3_000, Math.min(iops ?? 3_000, 500 * sizeGb));
    return { sizeGb, type: 'gp3', iops: operations, throughput: Math.max(125, Math.min(throughputMbs ?? 125, Math.floor(operations / 4))) };
  }
  if (volume === 'io2') return { sizeGb, type: 'io2', iops: Math.min(iops ?? 1_000, 1_000 * sizeGb), throughput: undefined };
  if (volume === 'standard') return { sizeGb, type: 'standard', iops: undefined, throughput: undefined };
  throw new PlaceRefusal('unsupported', 'place', `The table of disks names a kind of EBS volume that svc does not know: ${volume}.`);
}
