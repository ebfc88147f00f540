import type { Resources } from './task.ts';

/** One GPU of a computer. */
export interface Gpu {
  /** As the driver counts, and as CUDA_VISIBLE_DEVICES takes it. */
  readonly index: number;
  /** As the driver calls it, such as `NVIDIA A100-SXM4-80GB`. */
  readonly name: string;
  /** undefined when not known. */
  readonly memoryGb: number | undefined;
}

/** What to ask the driver's tool, whose answer `parseGpuList` reads. */
export const gpuQuery = ['nvidia-smi', '--query-gpu=index,name,memory.total', '--format=csv,noheader,nounits'] as const;

const mibPerGb = 1_024;

/** Lines such as `0, NVIDIA A100-SXM4-80GB, 81920`; others are left out. */
export function parseGpuList(text: string): readonly Gpu[] {
  return text.split('\n').flatMap((line) => {
    const [index, name, memory] = line.split(',').map((field) => field.trim());
    if (index === undefined || !/^\d+$/.test(index) || name === undefined || name === '') return [];
    const mib = Number(memory);
    return [{ index: Number(index), name, memoryGb: Number.isFinite(mib) && mib > 0 ? mib / mibPerGb : undefined }];
  });
}

/**
 * Whether a GPU is of the kind a user wrote: each part of `A100-80GB` stands in the driver's name as a word, whatever the case and however the
 * driver sets spaces (`RTX4090` is `GeForce RTX 4090`, but `L4` is not `L40S`).
 */
export function isGpuNamed(gpu: Gpu, wanted: string): boolean {
  return wanted
    .split(/[-_\s]+/)
    .filter((part) => part !== '')
    .every((part) => {
      const spaced = part
        .split('')
        .map((character) => character.replace(/[^a-z0-9]/i, '\\$&'))
        .join('[-_ ]?');
      return new RegExp(`(?<![a-z0-9])${spaced}(?![a-z0-9])`, 'i').test(gpu.name);
    });
}

/** What of `resources` is about GPUs. */
export type GpuRequest = Pick<Resources, 'accelerator' | 'acceleratorMemory'>;

/** How many GPUs are asked for; a part of one takes it whole. */
export function wantedGpuCount({ accelerator, acceleratorMemory }: GpuRequest): number {
  return Math.ceil(accelerator?.count ?? acceleratorMemory?.count ?? 0);
}

/** The GPUs that would do. */
export function matchingGpus(gpus: readonly Gpu[], { accelerator, acceleratorMemory }: GpuRequest): readonly Gpu[] {
  return gpus.filter((gpu) => {
    if (accelerator !== undefined && !isGpuNamed(gpu, accelerator.name)) return false;
    if (acceleratorMemory === undefined) return true;
    const { value, atLeast, manufacturer } = acceleratorMemory;
    // Drivers keep a little of the memory for themselves.
    const gb = gpu.memoryGb === undefined ? undefined : Math.ceil(gpu.memoryGb);
    if (gb === undefined || (atLeast ? gb < value : gb !== value)) return false;
    return manufacturer === undefined || gpu.name.toLowerCase().includes(manufacturer.toLowerCase());
  });
}

/** `2x NVIDIA L4, 1x Tesla T4`; `none` for none. */
export function describeGpus(gpus: readonly Gpu[]): string {
  const counts = new Map<string, number>();
  for (const { name } of gpus) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count}x ${name}`).join(', ') || 'none';
}
