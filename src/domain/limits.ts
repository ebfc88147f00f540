/**
 * How many services one controller runs: `min(4 × vCPUs, memory in GiB)`, and at least one.
 * Users of this kind of tool know the formula. Each service has two processes of its own.
 */
export function serviceLimit(vcpus: number, memoryGib: number): number {
  return Math.max(1, Math.min(4 * Math.floor(vcpus), Math.floor(memoryGib)));
}
