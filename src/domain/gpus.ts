import type { Resources } from './task.ts';

/** One GPU of a machine. */
export interface Gpu {
  /** As the driver counts and CUDA_VISIBLE_DEVICES expects it. */
  readonly index: number;
  /** As the driver reports it, such as `NVIDIA A100-SXM4-80GB`. */
  readonly name: string;
  /** undefined when unknown. */
  readonly memoryGb: number | undefined;
}

/** Command of the driver's tool; `parseGpuList` parses its output. */
export const gpuQuery = ['nvidia-smi', '--query-gpu=index,name,memory.total', '--format=csv,noheader,nounits'] as const;

const mibPerGb = 1_024;

/** Parses lines such as `0, NVIDIA A100-SXM4-80GB, 81920` and ignores others. */
export function parseGpuList(text: string): readonly Gpu[] {
  return text.split('\n').flatMap((line) => {
    const [index, name, memory] = line.split(',').map((field) => field.trim());
    if (index === undefined || !/^\d+$/.test(index) || name === undefined || name === '') return [];
    const mib = Number(memory);
    return [{ index: Number(index), name, memoryGb: Number.isFinite(mib) && mib > 0 ? mib / mibPerGb : undefined }];
  });
}

/**
 * Whether each part of a requested name (`A100-80GB`) is a word of the driver's name. Case and the driver's spaces do
 * not matter: `RTX4090` matches `GeForce RTX 4090`, but `L4` does not match `L40S`.
 */
export function isGpuNamed(gpu: Gpu, requested: string): boolean {
  return requested
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

type GpuRequest = Pick<Resources, 'accelerator' | 'acceleratorMemory'>;

/** Number of GPUs requested. A fraction of a GPU occupies a whole one. */
export function requestedGpuCount({ accelerator, acceleratorMemory }: GpuRequest): number {
  return Math.ceil(accelerator?.count ?? acceleratorMemory?.count ?? 0);
}

/** The GPUs that match the request. */
export function matchingGpus(gpus: readonly Gpu[], { accelerator, acceleratorMemory }: GpuRequest): readonly Gpu[] {
  return gpus.filter((gpu) => {
    if (accelerator !== undefined && !isGpuNamed(gpu, accelerator.name)) return false;
    if (acceleratorMemory === undefined) return true;
    const { value, atLeast, manufacturer } = acceleratorMemory;
    // Drivers reserve a little of the memory.
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
