import { requestedGpuCount } from '../../../domain/gpus.ts';
import type { Resources } from '../../../domain/task.ts';

/** A pod's resource requests. */
export interface PodSize {
  readonly cpus: number;
  readonly memoryGb: number;
  /** Whether it may use more memory than requested, if the node has some: when the task sets no memory. */
  readonly isMemorySoft: boolean;
}

/** Request of a task that sets no amount; with GPUs, for each of them. Neither is a limit. */
const defaultCpus = 1;
const defaultMemoryGb = 2;
const defaultMemoryGbPerGpu = 4;

/** GB for each requested vCPU, when the task requests no memory. */
const memoryGbPerCpu = 2;

/** The pod's size for resources: amounts as requested (`2+` is 2), defaults for the rest. */
export function requestedSize(resources: Resources): PodSize {
  const named = resources.instanceType === undefined ? undefined : readSize(resources.instanceType);
  if (named !== undefined) return named;
  const gpus = requestedGpuCount(resources);
  const cpus = resources.cpus?.value ?? (gpus === 0 ? defaultCpus : gpus * defaultCpus);
  if (resources.memory !== undefined) return { cpus, memoryGb: resources.memory.value, isMemorySoft: false };
  const memoryGb = gpus === 0 ? (resources.cpus === undefined ? defaultMemoryGb : cpus * memoryGbPerCpu) : gpus * defaultMemoryGbPerGpu;
  return { cpus, memoryGb, isMemorySoft: true };
}

/** The size as an instance type, in SkyPilot's form: `2CPU--4GB`, or `2CPU--4GB+` when the pod may use more memory. */
export function sizeName({ cpus, memoryGb, isMemorySoft }: PodSize): string {
  return `${cpus}CPU--${memoryGb}GB${isMemorySoft ? '+' : ''}`;
}

/**
 * The inverse of `sizeName`; undefined for any other text. Suffixes of SkyPilot's names (`--L4:1`) belong in
 * `accelerators`.
 */
export function readSize(name: string): PodSize | undefined {
  const match = /^(\d+(?:\.\d+)?)CPU--(\d+(?:\.\d+)?)GB(\+?)$/.exec(name);
  if (match === null) return undefined;
  return { cpus: Number(match[1]), memoryGb: Number(match[2]), isMemorySoft: match[3] === '+' };
}
