import { acceleratorMemoryGb, canonicalAccelerator } from '../../domain/accelerators.ts';

/** A way of saying by a node's label which GPUs it has. */
export interface GpuLabelFormat {
  /** Who writes it, for people. */
  readonly name: string;
  readonly key: string;
  /** Label with the memory of one GPU, MiB, by the same writer. */
  readonly memoryKey?: string;
  /** The values for an accelerator, where they are known without having seen a node: for clusters that add nodes as they are wanted. */
  readonly valuesFor?: (accelerator: string) => readonly string[];
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

/** Names of graphics cards have spaces, which labels cannot. */
const asValue = (accelerator: string): string => accelerator.replaceAll(' ', '-');
const lowerCase = (accelerator: string): readonly string[] => [asValue(accelerator).toLowerCase()];
const upperCase = (accelerator: string): readonly string[] => [asValue(accelerator).toUpperCase()];

/** The users' own, which goes before all others. */
const ownFormat: GpuLabelFormat = {
  name: 'svc',
  key: 'svc.dev/accelerator',
  valuesFor: (accelerator) => [asValue(accelerator), ...lowerCase(accelerator)],
};

/** Every format that is known, the one that says most about a node first. */
export const gpuLabelFormats: readonly GpuLabelFormat[] = [
  ownFormat,
  { name: 'SkyPilot', key: 'skypilot.co/accelerator', valuesFor: lowerCase },
  { name: 'GKE', key: 'cloud.google.com/gke-accelerator', valuesFor: (accelerator) => [gkeNames[accelerator] ?? []].flat() },
  {
    name: 'Karpenter',
    key: 'karpenter.k8s.aws/instance-gpu-name',
    memoryKey: 'karpenter.k8s.aws/instance-gpu-memory',
    valuesFor: (accelerator) => lowerCase(withoutMemory(accelerator)),
  },
  { name: 'EKS', key: 'k8s.amazonaws.com/accelerator' },
  {
    name: 'EKS Auto Mode',
    key: 'eks.amazonaws.com/instance-gpu-name',
    memoryKey: 'eks.amazonaws.com/instance-gpu-memory',
    valuesFor: (accelerator) => lowerCase(withoutMemory(accelerator)),
  },
  { name: 'CoreWeave', key: 'gpu.nvidia.com/class', valuesFor: upperCase },
  { name: 'Nebius', key: 'nebius.com/gpu-name', valuesFor: upperCase },
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
  /** The label that tells it from another kind that `format` gives the same value; undefined where none has to, or none does. */
  readonly memoryLabel: { readonly key: string; readonly value: string } | undefined;
  /** Of which size the parts are that GKE counts; undefined for whole GPUs. */
  readonly gkePartition: string | undefined;
}

/** What a node says that its GPUs are; undefined for one that says nothing. */
export function gpuKindOf(labels: Readonly<Record<string, string>>): GpuKind | undefined {
  const said = gpuLabelFormats.filter(({ key }) => (labels[key] ?? '') !== '');
  // Whoever tells of parts knows more than who tells of the GPUs that these are parts of.
  const format = said.find((one) => one === ownFormat || partOf.test(labels[one.key] ?? '')) ?? said[0];
  const value = labels[format?.key ?? ''];
  if (format === undefined || value === undefined) return undefined;
  const memoryKey = [format.memoryKey, memoryLabel].find((key) => Number(labels[key ?? '']) > 0);
  const mib = labels[memoryKey ?? ''];
  const told = mib === undefined ? undefined : Math.ceil(Number(mib) / 1_024);
  const gkePartition = labels[gkeLabels.partition];
  const [, whole = value, part = gkePartition] = partOf.exec(value) ?? [];
  // A part is no GPU of that kind: who asks for one gets no part of one.
  const name = part === undefined ? acceleratorOfLabel(value, told) : `${acceleratorOfLabel(whole)}-MIG-${part}`;
  return {
    name,
    memoryGb: acceleratorMemoryGb(name) ?? told ?? partMemoryGb(part),
    format,
    value,
    memoryLabel: memoryKey !== undefined && mib !== undefined && isAmbiguous(value) ? { key: memoryKey, value: mib } : undefined,
    gkePartition,
  };
}

/** `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb` */
const partOf = /^(.+)-MIG-(.+)$/i;

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

/** Memory of GPUs of which there are several by one name, GB. */
const memorySizes = [16, 32, 40, 80];

/** Drivers keep a little of the memory for themselves. */
function roundedGb(memoryGb: number): number {
  return memorySizes.find((size) => memoryGb > size * 0.9 && memoryGb <= size) ?? memoryGb;
}

/** Whether a label's value leaves open which of several sizes is meant: Amazon calls each A100 `a100`. */
function isAmbiguous(value: string): boolean {
  return !/\d+gb/i.test(value) && memorySizes.some((size) => acceleratorOfLabel(value, size) !== acceleratorOfLabel(value));
}

/** `A100-80GB` as those call it who tell of its memory apart: `A100`. */
function withoutMemory(accelerator: string): string {
  return canonicalAccelerator(accelerator.replace(/-\d+GB$/, '')) ?? accelerator;
}

/** Which GPUs of a format are of a kind that no node has yet. */
export interface GpuLabels {
  readonly values: readonly string[];
  readonly memory: { readonly key: string; readonly values: readonly string[] } | undefined;
}

/** How a format would tell of an accelerator; undefined where that is not known. */
export function labelsFor({ valuesFor, memoryKey: key }: GpuLabelFormat, accelerator: string): GpuLabels | undefined {
  const values = [...new Set(valuesFor?.(accelerator))];
  const [value] = values;
  if (value === undefined) return undefined;
  const gb = acceleratorMemoryGb(accelerator);
  const memory = key === undefined || gb === undefined || !isAmbiguous(value) ? undefined : { key, values: [String(gb * 1_024)] };
  return { values, memory };
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
