import { canonicalAccelerator } from '../../domain/accelerators.ts';
import type { KubernetesContextConfig } from '../../domain/config.ts';
import { wantedGpuCount } from '../../domain/gpus.ts';
import { whyNot } from '../../domain/offer-match.ts';
import type { Amount, Resources } from '../../domain/task.ts';
import { didYouMean } from '../../shared/did-you-mean.ts';
import type { Offer, OfferList, RejectedOffer } from '../provider.ts';
import { gpuLabelFormats, type GpuKind } from './gpu-labels.ts';
import { chooseImage } from './image.ts';
import { untolerated, type NodeFacts } from './node-facts.ts';
import type { Toleration } from './objects.ts';
import { podPrice } from '../../domain/pod-price.ts';
import { configuredSelector, podTolerations } from './pod-settings.ts';
import { readSize, sizeName, wantedSize, type PodSize } from './size.ts';

/** A context as offers are made of it. */
export interface OfferingCluster {
  readonly context: string;
  readonly config: KubernetesContextConfig;
  /** Its nodes; or that they may not be read (`hidden`), so that only the scheduler knows; or why it cannot be asked, as a clause. */
  readonly state: { readonly nodes: readonly NodeFacts[] } | { readonly hidden: true } | { readonly why: string };
}

/** Which contexts there are and may be used, for saying so. */
export interface KnownContexts {
  /** Of the kubeconfig. */
  readonly names: readonly string[];
  /** Of these, the ones that may be used. */
  readonly usable: readonly string[];
}

/** Nodes that are told of in one sentence, and contexts, at most. */
const shownNodes = 5;
/** Nodes that are told of where all is explained. */
const explainedNodes = 100;

/** What pods could be had, cheapest first, or why none. */
export function kubernetesOffers(
  resources: Resources,
  known: KnownContexts,
  clusters: readonly OfferingCluster[],
  explain: boolean,
): OfferList {
  const wrong = whyNoContext(resources, known);
  if (wrong !== undefined) return { offers: [], whyNone: wrong, isMisnamed: isUnknown(resources.region, known) };
  const judged = clusters.map((cluster) => judgeCluster(resources, cluster));
  const offers = judged.flatMap((one) => one.offers).toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
  const whys = judged.flatMap(({ why }) => why ?? []);
  const hidden = judged.flatMap((one) => (one.isHidden && one.offers.length > 0 ? [one.context] : []));
  return {
    offers,
    whyNone: offers.length > 0 ? undefined : `No Kubernetes cluster has what is asked for${wantedText(resources)}: ${whys.join('; ')}.`,
    ...(hidden.length > 0 && {
      notice: `The nodes of ${hidden.join(', ')} may not be read, so only their schedulers know whether there is room; docs/clouds/kubernetes.md has the role.`,
    }),
    ...(explain && { rejected: judged.flatMap(({ rejected }) => rejected) }),
  };
}

function whyNoContext({ region, zone, cloud }: Resources, { names, usable }: KnownContexts): string | undefined {
  if (zone !== undefined)
    return `The zone '${zone}' is asked for${cloud === undefined ? '' : ` on ${cloud}`}, and Kubernetes contexts have none here.`;
  if (names.length === 0) return 'There is no kubeconfig with a context.';
  if (region === undefined || usable.includes(region)) return usable.length > 0 ? undefined : 'No Kubernetes context may be used.';
  if (names.includes(region))
    return `The Kubernetes context '${region}' is not among kubernetes.allowed_contexts (${usable.join(', ') || 'none'}) of the configuration.`;
  const meant = didYouMean(region, names);
  const suggestion = meant === undefined ? '' : ` Did you mean '${meant}'?`;
  return `There is no Kubernetes context '${region}' (there are: ${names.join(', ')}).${suggestion}`;
}

const isUnknown = (region: string | undefined, { names }: KnownContexts): boolean =>
  region !== undefined && names.length > 0 && !names.includes(region);

interface ClusterJudgement {
  readonly context: string;
  readonly offers: readonly Offer[];
  readonly rejected: readonly RejectedOffer[];
  /** Why there is no offer, as a clause that begins with the context's name. */
  readonly why: string | undefined;
  readonly isHidden: boolean;
}

function judgeCluster(resources: Resources, { context, config, state }: OfferingCluster): ClusterJudgement {
  const nothing = (why: string): ClusterJudgement => ({ context, offers: [], rejected: [], why: `${context} ${why}`, isHidden: false });
  if ('why' in state) return nothing(`cannot be used: ${state.why}`);
  const image = chooseImage(resources.imageId, context, config.image);
  if ('why' in image) return nothing(image.why);
  const { instanceType } = resources;
  if (instanceType !== undefined && readSize(instanceType) === undefined)
    return nothing(`has pods of any size and no '${instanceType}' (instance_type there is such as 4CPU--16GB)`);
  const size = wantedSize(resources);
  const isHidden = 'hidden' in state;
  const kinds = isHidden ? hiddenKinds(resources, config) : undefined;
  const allowed: AllowedNodes = {
    selector: Object.entries(configuredSelector(config)),
    tolerations: podTolerations(config, wantedGpuCount(resources), resources.useSpot),
  };
  const looks = 'nodes' in state ? state.nodes.map((node) => lookAt(resources, allowed, size, node)) : [];
  const found = kinds ?? kindsOf(resources, config, looks);
  const hasEnd = !isHidden && config.autoscaler === undefined;
  const judged = found
    .map((gpu): Offer => {
      const offer = offerOf(resources, context, config, size, gpu);
      return hasEnd ? { ...offer, room: roomFor(size, offer.accelerator, looks) } : offer;
    })
    .map((offer) => ({ offer, why: whyNot(forThePod(resources), { ...offer, accelerator: undefined }) }));
  const offers = judged.flatMap(({ offer, why }) => (why === undefined ? [offer] : []));
  const tooDear = judged.flatMap(({ offer, why }) => (why === undefined ? [] : [{ offer, why }]));
  const rejected = looks.slice(0, explainedNodes).flatMap((look) => rejectedNode(look, context));
  if (offers.length > 0) return { context, offers, rejected: [...tooDear, ...rejected], why: undefined, isHidden };
  const [dear] = tooDear;
  const why = dear === undefined ? whyNoNode(looks, isHidden) : dear.why;
  return { ...nothing(why), rejected: [...tooDear, ...rejected], isHidden };
}

/** Everything but the GPUs, which nodes are asked for, and the name of the size, which is made of what is asked for. */
function forThePod(resources: Resources): Resources {
  return {
    ...resources,
    accelerator: undefined,
    acceleratorMemory: undefined,
    instanceType: undefined,
    cpus: undefined,
    memory: undefined,
  };
}

function offerOf(
  resources: Resources,
  context: string,
  config: KubernetesContextConfig,
  size: PodSize,
  gpu: Pick<GpuKind, 'name' | 'memoryGb'> | undefined,
): Offer {
  const count = wantedGpuCount(resources);
  const accelerator = gpu === undefined || count === 0 ? undefined : { name: gpu.name, count, memoryGb: gpu.memoryGb };
  return {
    provider: 'kubernetes',
    region: context,
    zone: undefined,
    instanceType: resources.instanceType ?? sizeName(size),
    cpus: size.cpus,
    memoryGb: size.memoryGb,
    accelerator,
    spot: resources.useSpot,
    hourlyUsd: podPrice(config.price, { cpus: size.cpus, memoryGb: size.memoryGb, accelerator }),
  };
}

/** What a node means for a request. */
interface NodeLook {
  readonly node: NodeFacts;
  /** Why no pod fits there now, as a clause; undefined when one does. */
  readonly why: string | undefined;
  /** Whether its GPUs would do, were they free. */
  readonly isRightKind: boolean;
}

/** Which nodes pods may be put on, once for all nodes. */
interface AllowedNodes {
  readonly selector: readonly (readonly [key: string, value: string])[];
  readonly tolerations: readonly Toleration[];
}

function lookAt(resources: Resources, allowed: AllowedNodes, size: PodSize, node: NodeFacts): NodeLook {
  const wrongKind = whyWrongGpus(resources, node);
  const why = wrongKind ?? whyNotThere(resources, allowed, node) ?? whyNoRoom(size, wantedGpuCount(resources), node);
  return { node, why, isRightKind: wrongKind === undefined };
}

function whyWrongGpus(resources: Resources, { gpu, whole }: NodeFacts): string | undefined {
  const count = wantedGpuCount(resources);
  if (count === 0) return undefined;
  if (whole.gpus === 0) return 'has no GPUs';
  if (gpu === undefined) return `has ${whole.gpus} GPUs, but no label that tells their kind`;
  const { accelerator, acceleratorMemory } = resources;
  const only = { ...forThePod(resources), maxHourlyCost: undefined, cloud: undefined, region: undefined, zone: undefined, useSpot: false };
  const wanted = {
    ...only,
    accelerator: accelerator && { ...accelerator, count },
    acceleratorMemory: acceleratorMemory && { ...acceleratorMemory, count },
  };
  const as = { provider: 'kubernetes', region: '', zone: undefined, instanceType: '', cpus: 0, memoryGb: 0, spot: false, hourlyUsd: 0 };
  const wrong = whyNot(wanted, { ...as, accelerator: { name: gpu.name, count, memoryGb: gpu.memoryGb } });
  if (wrong !== undefined) return `has ${whole.gpus}x ${gpu.name}`;
  return whole.gpus < count ? `has ${whole.gpus}x ${gpu.name}, ${count} wanted` : undefined;
}

function whyNotThere({ useSpot }: Resources, { selector, tolerations }: AllowedNodes, node: NodeFacts): string | undefined {
  if (node.closed !== undefined) return node.closed;
  if (useSpot && !node.isSpot) return 'is no spot node';
  const missing = selector.find(([key, value]) => node.labels[key] !== value);
  if (missing !== undefined) return `lacks the label ${missing[0]}=${missing[1]} of node_selector`;
  const taint = untolerated(node.taints, tolerations);
  if (taint === undefined) return undefined;
  const value = taint.value === undefined || taint.value === '' ? '' : `=${taint.value}`;
  return `has the taint ${taint.key}${value}:${taint.effect}, which pods do not tolerate`;
}

function whyNoRoom({ cpus, memoryGb }: PodSize, gpus: number, { free, whole, gpu }: NodeFacts): string | undefined {
  if (gpus > free.gpus) return `has ${free.gpus} of ${whole.gpus} ${gpu?.name ?? 'GPUs'} free, ${gpus} wanted`;
  if (cpus > free.cpus) return `has ${amountLeft(free.cpus, whole.cpus)} CPUs free, ${cpus} wanted`;
  if (memoryGb > free.memoryGb) return `has ${amountLeft(free.memoryGb, whole.memoryGb)} GB of memory free, ${memoryGb} wanted`;
  return free.pods < 1 ? `has as many pods as it takes (${whole.pods})` : undefined;
}

/** How many pods fit now, node by node: what is left over on each of two nodes makes no room for one. */
function roomFor({ cpus, memoryGb }: PodSize, accelerator: Offer['accelerator'], looks: readonly NodeLook[]): number {
  const fitting = looks.filter(({ node, why }) => why === undefined && (accelerator === undefined || node.gpu?.name === accelerator.name));
  return fitting.reduce((sum, { node: { free } }) => {
    const byGpu = accelerator === undefined ? Number.POSITIVE_INFINITY : times(free.gpus, accelerator.count);
    return sum + Math.min(times(free.cpus, cpus), times(free.memoryGb, memoryGb), byGpu, Math.floor(free.pods));
  }, 0);
}

/** How often an amount is in another: 0.3 has 0.1 three times, whatever is lost in dividing. */
const times = (free: number, amount: number): number => Math.floor(free / amount + 1e-9);

/** Rounded down: what is said to be free is. */
const shortly = (amount: number): number => Math.floor(amount * 10) / 10;
const amountLeft = (free: number, whole: number): string => `${shortly(free)} of ${shortly(whole)}`;

/** The kinds of GPUs that can be had, each once, or a single undefined where none are wanted. */
function kindsOf(
  resources: Resources,
  config: KubernetesContextConfig,
  looks: readonly NodeLook[],
): readonly (Pick<GpuKind, 'name' | 'memoryGb'> | undefined)[] {
  const fitting = looks.filter(({ why }) => why === undefined);
  if (wantedGpuCount(resources) === 0) return fitting.length > 0 || config.autoscaler !== undefined ? [undefined] : [];
  const named = new Map<string, GpuKind>();
  // A cluster that grows gets more of what it has, whatever is taken of that now.
  const counted = config.autoscaler === undefined ? fitting : looks.filter(({ isRightKind }) => isRightKind);
  for (const { node } of counted) if (node.gpu !== undefined) named.set(node.gpu.name, node.gpu);
  if (named.size > 0) return [...named.values()];
  return config.autoscaler === undefined ? [] : unseenKinds(resources);
}

/** GPUs that no node has yet, in a cluster that gets nodes as they are wanted: only what a label can ask for by its known name. */
function unseenKinds({ accelerator }: Resources): readonly Pick<GpuKind, 'name' | 'memoryGb'>[] {
  if (accelerator === undefined) return [];
  return [{ name: canonicalAccelerator(accelerator.name) ?? accelerator.name, memoryGb: undefined }];
}

/** Where nodes cannot be read, GPUs are to be had only where the configuration says by a node selector of which kind they are. */
function hiddenKinds(resources: Resources, config: KubernetesContextConfig): readonly (Pick<GpuKind, 'name' | 'memoryGb'> | undefined)[] {
  if (wantedGpuCount(resources) === 0) return [undefined];
  const selector = configuredSelector(config);
  const isSelected = gpuLabelFormats.some(({ key }) => selector[key] !== undefined);
  return isSelected || config.autoscaler !== undefined ? unseenKinds(resources) : [];
}

function whyNoNode(looks: readonly NodeLook[], isHidden: boolean): string {
  if (isHidden) return 'does not let its nodes be read, so nobody knows which GPUs they have';
  if (looks.length === 0) return 'has no nodes';
  // What comes nearest first: a node of the right kind that is full says more than one without GPUs.
  const ordered = looks.toSorted(
    (a, b) => Number(b.isRightKind) - Number(a.isRightKind) || Number(b.node.closed === undefined) - Number(a.node.closed === undefined),
  );
  const shown = ordered.slice(0, shownNodes).map(({ node, why }) => `${node.name} ${why ?? 'fits'}`);
  const more = looks.length > shownNodes ? `, and ${looks.length - shownNodes} more` : '';
  return `has no such node (${shown.join(', ')}${more})`;
}

function rejectedNode({ node, why }: NodeLook, context: string): readonly RejectedOffer[] {
  if (why === undefined) return [];
  const { free, gpu, isSpot } = node;
  const offer: Offer = {
    provider: 'kubernetes',
    region: context,
    zone: undefined,
    instanceType: `node ${node.name}`,
    cpus: shortly(free.cpus),
    memoryGb: shortly(free.memoryGb),
    accelerator: gpu === undefined || free.gpus === 0 ? undefined : { name: gpu.name, count: free.gpus, memoryGb: gpu.memoryGb },
    spot: isSpot,
    hourlyUsd: 0,
  };
  return [{ offer, why }];
}

function wantedText(resources: Resources): string {
  const { cpus, memory, accelerator, acceleratorMemory, useSpot } = resources;
  const size = wantedSize(resources);
  const cpuText = cpus === undefined ? String(size.cpus) : amountText(cpus);
  const parts = [
    `${cpuText} ${cpuText === '1' ? 'CPU' : 'CPUs'}`,
    `${memory === undefined ? size.memoryGb : amountText(memory)} GB`,
    ...(accelerator === undefined ? [] : [`${accelerator.count}x ${accelerator.name}`]),
    ...(acceleratorMemory === undefined
      ? []
      : [`${acceleratorMemory.count}x ${acceleratorMemory.manufacturer ?? 'GPU'} of ${amountText(acceleratorMemory)} GB`]),
    ...(useSpot ? ['spot'] : []),
  ];
  return ` (${parts.join(', ')})`;
}

function amountText({ value, atLeast }: Amount): string {
  return `${value}${atLeast ? '+' : ''}`;
}
