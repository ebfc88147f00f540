import { wantedGpuCount } from '../../domain/gpus.ts';
import type { Resources } from '../../domain/task.ts';

/** What is set aside for one pod. */
export interface PodSize {
  readonly cpus: number;
  readonly memoryGb: number;
  /** Whether more memory than that may be used where there is some: when nobody said how much it is to be. */
  readonly isMemorySoft: boolean;
}

/** Set aside for who does not say how much is wanted; with GPUs, for each of them. Neither is a limit. */
const defaultCpus = 1;
const defaultMemoryGb = 2;
const defaultMemoryGbPerGpu = 4;

/** GB for each vCPU that is asked for, when no memory is. */
const memoryGbPerCpu = 2;

/** What resources come to: amounts as they are asked for (`2+` is 2), defaults for the rest. */
export function wantedSize(resources: Resources): PodSize {
  const named = resources.instanceType === undefined ? undefined : readSize(resources.instanceType);
  if (named !== undefined) return named;
  const gpus = wantedGpuCount(resources);
  const cpus = resources.cpus?.value ?? (gpus === 0 ? defaultCpus : gpus * defaultCpus);
  if (resources.memory !== undefined) return { cpus, memoryGb: resources.memory.value, isMemorySoft: false };
  const memoryGb = gpus === 0 ? (resources.cpus === undefined ? defaultMemoryGb : cpus * memoryGbPerCpu) : gpus * defaultMemoryGbPerGpu;
  return { cpus, memoryGb, isMemorySoft: true };
}

/** The size as the name of a kind of machine, as SkyPilot has them: `2CPU--4GB`, `2CPU--4GB+` where more memory may be used. */
export function sizeName({ cpus, memoryGb, isMemorySoft }: PodSize): string {
  return `${cpus}CPU--${memoryGb}GB${isMemorySoft ? '+' : ''}`;
}

/** The inverse of `sizeName`; undefined for what is no such name. What follows (`--L4:1` in SkyPilot's) is for `accelerators` to say. */
export function readSize(name: string): PodSize | undefined {
  const match = /^(\d+(?:\.\d+)?)CPU--(\d+(?:\.\d+)?)GB(\+?)$/.exec(name);
  if (match === null) return undefined;
  return { cpus: Number(match[1]), memoryGb: Number(match[2]), isMemorySoft: match[3] === '+' };
}
