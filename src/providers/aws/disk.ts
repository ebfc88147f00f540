import type { MachineSpec } from '../provider.ts';

/** A root disk as EBS is asked for it. */
export interface RootDisk {
  readonly sizeGb: number;
  readonly type: 'standard' | 'gp3' | 'io2';
  /** Operations a second; undefined where the type has no choice. */
  readonly iops: number | undefined;
  /** MiB a second. */
  readonly throughput: number | undefined;
}

/** The tiers of SkyPilot (`sky/clouds/aws.py`), so that one file gives the same disk: undefined is medium and best is ultra. */
const tiers = {
  low: { type: 'standard', iops: undefined },
  medium: { type: 'gp3', iops: 3_500 },
  high: { type: 'gp3', iops: 7_000 },
  ultra: { type: 'io2', iops: 20_000 },
  best: { type: 'io2', iops: 20_000 },
} as const;

/**
 * The disk for a size and tier. Never smaller than the image; operations and throughput are kept within what EBS allows for the size
 * (gp3: 3,000 to 500 per GB, and MiB/s a quarter of that at most; io2: 1,000 per GB;
 * https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html).
 */
export function rootDisk(spec: Pick<MachineSpec, 'diskSizeGb' | 'diskTier'>, imageGb: number): RootDisk {
  const sizeGb = Math.max(Math.ceil(spec.diskSizeGb), imageGb, 4);
  const tier = tiers[spec.diskTier ?? 'medium'];
  if (tier.type === 'standard') return { sizeGb, type: 'standard', iops: undefined, throughput: undefined };
  if (tier.type === 'io2') return { sizeGb, type: 'io2', iops: Math.min(tier.iops, 1_000 * sizeGb), throughput: undefined };
  const iops = Math.max(3_000, Math.min(tier.iops, 500 * sizeGb));
  return { sizeGb, type: 'gp3', iops, throughput: Math.max(125, Math.floor(iops / 16)) };
}
