import { acceleratorMemoryGb, canonicalAccelerator } from '../../domain/accelerators.ts';

/** A way of saying by a node's label which GPUs it has. */
export interface GpuLabelFormat {
  /** Who writes it, for people. */
  readonly name: string;
  readonly key: string;
  /** The value for an accelerator, where it is known without having seen a node: for clusters that add nodes as they are wanted. */
  readonly labelFor?: (accelerator: string) => string | undefined;
}

/** What GKE calls accelerators. */
const gkeNames: Readonly<Record<string, string>> = {
  A100: 'nvidia-tesla-a100',
  'A100-80GB': 'nvidia-a100-80gb',
  B200: 'nvidia-b200',
  H100: 'nvidia-h100-80gb',
  'H100-MEGA': 'nvidia-h100-mega-80gb',
  H200: 'nvidia-h200-141gb',
  L4: 'nvidia-l4',
  P100: 'nvidia-tesla-p100',
  P4: 'nvidia-tesla-p4',
  T4: 'nvidia-tesla-t4',
  V100: 'nvidia-tesla-v100',
};

/** Every format that is known, the one that says most about a node first. */
export const gpuLabelFormats: readonly GpuLabelFormat[] = [
  { name: 'svc', key: 'svc.dev/accelerator' },
  { name: 'SkyPilot', key: 'skypilot.co/accelerator' },
  { name: 'GKE', key: 'cloud.google.com/gke-accelerator', labelFor: (accelerator) => gkeNames[accelerator] },
  { name: 'Karpenter', key: 'karpenter.k8s.aws/instance-gpu-name', labelFor: (accelerator) => accelerator.toLowerCase() },
  { name: 'EKS', key: 'k8s.amazonaws.com/accelerator' },
  { name: 'EKS Auto Mode', key: 'eks.amazonaws.com/instance-gpu-name', labelFor: (accelerator) => accelerator.toLowerCase() },
  { name: 'CoreWeave', key: 'gpu.nvidia.com/class' },
  { name: 'GPU feature discovery', key: 'nvidia.com/gpu.product' },
  { name: "AMD's node labeller", key: 'amd.com/gpu.product-name' },
];

/** Label by which GPU feature discovery tells the memory of one GPU, MiB; of a part, where GPUs are parted. */
const memoryLabel = 'nvidia.com/gpu.memory';

/** Labels by which GKE tells that its nodes count parts of GPUs, and of what size: which GPUs these are is told by the same label as of whole ones. */
export const gkeLabels = { accelerator: 'cloud.google.com/gke-accelerator', partition: 'cloud.google.com/gke-gpu-partition-size' } as const;

/** Resources under which device plugins count GPUs. */
export const gpuResources = ['nvidia.com/gpu', 'amd.com/gpu'] as const;

/** One of them. */
export type GpuResource = (typeof gpuResources)[number];

/** What the GPUs of a node are, by its labels. */
export interface GpuKind {
  /** The catalogue's name, where it has one; else what the label says. */
  readonly name: string;
  /** GB of one; undefined where nobody says. */
  readonly memoryGb: number | undefined;
  readonly format: GpuLabelFormat;
  /** What the label says. */
  readonly value: string;
  /** Of which size the parts are that GKE counts; undefined for whole GPUs. */
  readonly gkePartition: string | undefined;
}

/** What a node says that its GPUs are; undefined for one that says nothing. */
export function gpuKindOf(labels: Readonly<Record<string, string>>): GpuKind | undefined {
  for (const format of gpuLabelFormats) {
    const value = labels[format.key];
    if (value === undefined || value === '') continue;
    const mib = Number(labels[memoryLabel]);
    const told = Number.isFinite(mib) && mib > 0 ? Math.ceil(mib / 1_024) : undefined;
    const gkePartition = labels[gkeLabels.partition];
    const [, whole = value, part = gkePartition] = /^(.+)-MIG-(.+)$/i.exec(value) ?? [];
    // A part is no GPU of that kind: who asks for one gets no part of one.
    const name = part === undefined ? acceleratorOfLabel(value, told) : `${acceleratorOfLabel(whole)}-MIG-${part}`;
    return { name, memoryGb: acceleratorMemoryGb(name) ?? told ?? partMemoryGb(part), format, value, gkePartition };
  }
  return undefined;
}

/** `1g.5gb` */
function partMemoryGb(part = ''): number | undefined {
  const gb = /(\d+)gb/i.exec(part)?.[1];
  return gb === undefined ? undefined : Number(gb);
}

/** How a GPU is connected, that it is shared and what AMD calls all of its own does not tell one kind from another. */
const needless = /^(?:pcie|sxm\d?|nvlink|hbm\d?e?|shared|amd|instinct|oam)$/i;

/** A label's value as the catalogue's name: `NVIDIA-H100-PCIe` is `H100`. `memoryGb` tells apart those of one name with more memory. */
export function acceleratorOfLabel(value: string, memoryGb?: number): string {
  const words = value.split(/[-_\s]+/).filter((word) => !needless.test(word));
  const candidates = [value, ...words.map((_word, index) => words.slice(0, words.length - index).join('-'))];
  const known = candidates.map((candidate) => canonicalAccelerator(candidate)).find((name) => name !== undefined);
  if (known === undefined) return value;
  const larger = memoryGb === undefined ? undefined : canonicalAccelerator(`${known}-${roundedGb(memoryGb)}GB`);
  return larger ?? known;
}

/** Drivers keep a little of the memory for themselves. */
function roundedGb(memoryGb: number): number {
  return [16, 32, 40, 80].find((size) => memoryGb > size * 0.9 && memoryGb <= size) ?? memoryGb;
}

/** Labels by which nodes say that they may be taken away at any time, with the value. */
export const spotLabels: readonly (readonly [key: string, value: string])[] = [
  ['cloud.google.com/gke-spot', 'true'],
  ['cloud.google.com/gke-preemptible', 'true'],
  ['eks.amazonaws.com/capacityType', 'SPOT'],
  ['karpenter.sh/capacity-type', 'spot'],
  ['kubernetes.azure.com/scalesetpriority', 'spot'],
];

/** Whether a node is one that its cloud may take away. */
export function isSpotNode(labels: Readonly<Record<string, string>>): boolean {
  return spotLabels.some(([key, value]) => labels[key] === value);
}
