import { acceleratorMemoryGb, canonicalAccelerator } from '../../../domain/accelerators.ts';

interface GpuLabelFormat {
  readonly name: string;
  readonly key: string;
  /** Label with the memory of one GPU, MiB. */
  readonly memoryKey?: string;
  /** The values for an accelerator, where they are known without a node: for autoscalers. */
  readonly valuesFor?: (accelerator: string) => readonly string[];
}

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

/** Labels must not have spaces, as names of graphics cards do. */
const asValue = (accelerator: string): string => accelerator.replaceAll(' ', '-');
const lowerCase = (accelerator: string): readonly string[] => [asValue(accelerator).toLowerCase()];
const upperCase = (accelerator: string): readonly string[] => [asValue(accelerator).toUpperCase()];

/** The users' own label. It takes precedence. */
const ownFormat: GpuLabelFormat = {
  name: 'svc',
  key: 'svc.dev/accelerator',
  valuesFor: (accelerator) => [asValue(accelerator), ...lowerCase(accelerator)],
};

/** The most specific first. */
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

/** GPU feature discovery's label: memory of one GPU, MiB; of a part where GPUs are partitioned. */
const memoryLabel = 'nvidia.com/gpu.memory';

/** GKE's labels. `partition`: size of a node's GPU parts. `accelerator`: kind of the GPUs, whole or in parts. */
export const gkeLabels = { accelerator: 'cloud.google.com/gke-accelerator', partition: 'cloud.google.com/gke-gpu-partition-size' } as const;

/** Resources under which device plugins count GPUs. */
export const gpuResources = ['nvidia.com/gpu', 'amd.com/gpu'] as const;

/** One of `gpuResources`. */
export type GpuResource = (typeof gpuResources)[number];

/** A node's GPUs, by its labels. */
export interface GpuKind {
  /** The catalogue's name if it has one, else the label's value. */
  readonly name: string;
  /** GB of one GPU; undefined: no label names it. */
  readonly memoryGb: number | undefined;
  readonly format: GpuLabelFormat;
  readonly value: string;
  /** The label that distinguishes kinds with the same `value`. Undefined: not needed, or none exists. */
  readonly memoryLabel: { readonly key: string; readonly value: string } | undefined;
  /** Size of GKE's GPU parts; undefined: whole GPUs. */
  readonly gkePartition: string | undefined;
}

/** The kind of a node's GPUs by its labels; undefined without such a label. */
export function gpuKindOf(labels: Readonly<Record<string, string>>): GpuKind | undefined {
  const said = gpuLabelFormats.filter(({ key }) => (labels[key] ?? '') !== '');
  // A label that names parts is more precise than one for whole GPUs.
  const format = said.find((one) => one === ownFormat || partOf.test(labels[one.key] ?? '')) ?? said[0];
  const value = labels[format?.key ?? ''];
  if (format === undefined || value === undefined) return undefined;
  const memoryKey = [format.memoryKey, memoryLabel].find((key) => Number(labels[key ?? '']) > 0);
  const mib = labels[memoryKey ?? ''];
  const labelGb = mib === undefined ? undefined : Math.ceil(Number(mib) / 1_024);
  const gkePartition = labels[gkeLabels.partition];
  const [, whole = value, part = gkePartition] = partOf.exec(value) ?? [];
  // A request for a GPU must not get a part.
  const name = part === undefined ? acceleratorOfLabel(value, labelGb) : `${acceleratorOfLabel(whole)}-MIG-${part}`;
  return {
    name,
    memoryGb: acceleratorMemoryGb(name) ?? labelGb ?? partMemoryGb(part),
    format,
    value,
    memoryLabel: memoryKey !== undefined && mib !== undefined && isAmbiguous(value) ? { key: memoryKey, value: mib } : undefined,
    gkePartition,
  };
}

/** `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb` */
const partOf = /^(.+)-MIG-(.+)$/i;

function partMemoryGb(part = ''): number | undefined {
  const gb = /(\d+)gb/i.exec(part)?.[1];
  return gb === undefined ? undefined : Number(gb);
}

/** Words that do not distinguish kinds: the connection, sharing, and AMD's general names. */
const needless = /^(?:pcie|sxm\d?|nvlink|hbm\d?e?|shared|amd|instinct|oam)$/i;

/** The catalogue's name for a label's value: `H100` for `NVIDIA-H100-PCIe`. `memoryGb` selects a larger variant. */
export function acceleratorOfLabel(value: string, memoryGb?: number): string {
  const words = value.split(/[-_\s]+/).filter((word) => !needless.test(word));
  const candidates = [value, ...words.map((_word, index) => words.slice(0, words.length - index).join('-'))];
  const known = candidates.map((candidate) => canonicalAccelerator(candidate)).find((name) => name !== undefined);
  if (known === undefined) return value;
  const larger = memoryGb === undefined ? undefined : canonicalAccelerator(`${known}-${roundedGb(memoryGb)}GB`);
  return larger ?? known;
}

/** Sizes that distinguish GPUs of the same name, GB. */
const memorySizes = [16, 32, 40, 80];

/** Drivers reserve a little memory, so the reported size is rounded up to a known one. */
function roundedGb(memoryGb: number): number {
  return memorySizes.find((size) => memoryGb > size * 0.9 && memoryGb <= size) ?? memoryGb;
}

/** Whether a label's value may mean several sizes: Amazon calls each A100 `a100`. */
function isAmbiguous(value: string): boolean {
  return !/\d+gb/i.test(value) && memorySizes.some((size) => acceleratorOfLabel(value, size) !== acceleratorOfLabel(value));
}

/** `A100` for `A100-80GB`: the name in formats that have a separate label for the memory. */
function withoutMemory(accelerator: string): string {
  return canonicalAccelerator(accelerator.replace(/-\d+GB$/, '')) ?? accelerator;
}

interface GpuLabels {
  readonly values: readonly string[];
  readonly memory: { readonly key: string; readonly values: readonly string[] } | undefined;
}

/** A format's labels for an accelerator; undefined: unknown. */
export function labelsFor({ valuesFor, memoryKey: key }: GpuLabelFormat, accelerator: string): GpuLabels | undefined {
  const values = [...new Set(valuesFor?.(accelerator))];
  const [value] = values;
  if (value === undefined) return undefined;
  const gb = acceleratorMemoryGb(accelerator);
  const memory = key === undefined || gb === undefined || !isAmbiguous(value) ? undefined : { key, values: [String(gb * 1_024)] };
  return { values, memory };
}

/** Labels of nodes that the cloud may reclaim at any time. */
export const spotLabels: readonly (readonly [key: string, value: string])[] = [
  ['cloud.google.com/gke-spot', 'true'],
  ['cloud.google.com/gke-preemptible', 'true'],
  ['eks.amazonaws.com/capacityType', 'SPOT'],
  ['karpenter.sh/capacity-type', 'spot'],
  ['kubernetes.azure.com/scalesetpriority', 'spot'],
];

/** Whether the cloud may reclaim a node at any time. */
export function isSpotNode(labels: Readonly<Record<string, string>>): boolean {
  return spotLabels.some(([key, value]) => labels[key] === value);
}
