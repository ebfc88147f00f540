import { canonicalAccelerator } from '../../domain/accelerators.ts';
import type { KubernetesContextConfig } from '../../domain/config.ts';
import { requestedGpuCount } from '../../domain/gpus.ts';
import { whyNot } from '../../domain/offer-match.ts';
import { podPrice } from '../../domain/price.ts';
import type { Amount, Resources } from '../../domain/task.ts';
import { didYouMean } from '../../shared/did-you-mean.ts';
import type { Offer, OfferList, RejectedOffer } from '../provider.ts';
import { gpuLabelFormats, type GpuKind } from './nodes/gpu-labels.ts';
import { untolerated, type NodeFacts, type Toleration } from './nodes/node-facts.ts';
import {
  chooseImage,
  configuredSelector,
  podTolerations,
  readSize,
  sizeName,
  requestedSize,
  withAssumedAutoscaler,
  type PodSize,
} from './pod-settings.ts';

/** Input for a context's offers. */
export interface OfferingContext {
  readonly context: string;
  readonly config: KubernetesContextConfig;
  /** `hidden`: the user may not read nodes. `why`: the API server cannot be asked; a clause. */
  readonly state: { readonly nodes: readonly NodeFacts[] } | { readonly hidden: true } | { readonly why: string };
}

/** The contexts of the kubeconfig. */
export interface KnownContexts {
  readonly names: readonly string[];
  /** The contexts that svc may use. */
  readonly usable: readonly string[];
}

/** Maximum in a message. */
const shownNodes = 5;
/** Maximum of rejected nodes in an explanation. */
const explainedNodes = 100;

/** Offers for pods, cheapest first, or the reason why there are none. */
export function kubernetesOffers(
  resources: Resources,
  known: KnownContexts,
  clusters: readonly OfferingContext[],
  explain: boolean,
): OfferList {
  const wrong = whyNoContext(resources, known);
  if (wrong !== undefined) return { offers: [], whyNone: wrong, isMisnamed: isUnknown(resources.region, known) };
  const judged = clusters.map((cluster) => judgeContext(resources, cluster));
  const offers = judged.flatMap((one) => one.offers).toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
  const whys = judged.flatMap(({ why }) => why ?? []);
  const hidden = judged.flatMap((one) => (one.isHidden && one.offers.length > 0 ? [one.context] : []));
  const empty = judged.flatMap((one) => (one.isEmpty && one.offers.length > 0 ? [one.context] : []));
  const notices = [
    ...(hidden.length === 0
      ? []
      : [
          `The nodes of ${hidden.join(', ')} may not be read, so only their schedulers know whether there is room; docs/clouds/kubernetes.md has the role.`,
        ]),
    ...(empty.length === 0
      ? []
      : [
          `There are no nodes in ${empty.join(', ')} now: pods wait for new ones. Set kubernetes.autoscaler to the name of its autoscaler.`,
        ]),
  ];
  return {
    offers,
    whyNone: offers.length > 0 ? undefined : `No Kubernetes cluster has what is asked for${requestText(resources)}: ${whys.join('; ')}.`,
    ...(offers.length === 0 && judged.some(({ isFull }) => isFull) && { isFull: true }),
    ...(notices.length > 0 && { notice: notices.join(' ') }),
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

interface ContextJudgement {
  readonly context: string;
  readonly offers: readonly Offer[];
  readonly rejected: readonly RejectedOffer[];
  /** A clause that begins with the context's name; undefined: there is an offer. */
  readonly why: string | undefined;
  readonly isHidden: boolean;
  /** Whether it has no nodes, and the configuration names no autoscaler. */
  readonly isEmpty: boolean;
  /** Whether some node would do if it had no other pods. */
  readonly isFull: boolean;
}

function judgeContext(resources: Resources, { context, config: given, state }: OfferingContext): ContextJudgement {
  const nothing = (why: string): ContextJudgement => ({
    context,
    offers: [],
    rejected: [],
    why: `${context} ${why}`,
    isHidden: false,
    isEmpty: false,
    isFull: false,
  });
  if ('why' in state) return nothing(`cannot be used: ${state.why}`);
  const config = withAssumedAutoscaler(given, 'nodes' in state ? state.nodes : undefined);
  const image = chooseImage(resources.imageId, context, config.image);
  if ('why' in image) return nothing(image.why);
  const { instanceType } = resources;
  if (instanceType !== undefined && readSize(instanceType) === undefined)
    return nothing(`has pods of any size and no '${instanceType}' (instance_type there is such as 4CPU--16GB)`);
  const size = requestedSize(resources);
  const isHidden = 'hidden' in state;
  const kinds = isHidden ? hiddenKinds(resources, config) : undefined;
  const allowed: AllowedNodes = {
    selector: Object.entries(configuredSelector(config)),
    tolerations: podTolerations(config, requestedGpuCount(resources), resources.useSpot),
  };
  const fits = 'nodes' in state ? state.nodes.map((node) => checkNode(resources, allowed, size, node)) : [];
  const found = kinds ?? kindsOf(resources, config, fits);
  const hasEnd = !isHidden && config.autoscaler === undefined;
  const judged = found
    .map((gpu): Offer => {
      const offer = offerOf(resources, context, config, size, gpu);
      return hasEnd ? { ...offer, room: roomFor(size, offer.accelerator, fits) } : offer;
    })
    .map((offer) => ({ offer, why: whyNot(forThePod(resources), { ...offer, accelerator: undefined }) }));
  const offers = judged.flatMap(({ offer, why }) => (why === undefined ? [offer] : []));
  const tooDear = judged.flatMap(({ offer, why }) => (why === undefined ? [] : [{ offer, why }]));
  const rejected = fits.slice(0, explainedNodes).flatMap((fit) => rejectedNode(fit, context));
  if (offers.length > 0)
    return { context, offers, rejected: [...tooDear, ...rejected], why: undefined, isHidden, isEmpty: config !== given, isFull: false };
  const [dear] = tooDear;
  const why = dear === undefined ? whyNoNode(fits, isHidden) : dear.why;
  const isFull =
    dear === undefined && fits.some(({ node }) => checkNode(resources, allowed, size, { ...node, free: node.whole }).why === undefined);
  return { ...nothing(why), rejected: [...tooDear, ...rejected], isHidden, isFull };
}

/** Without GPUs, which `checkNode` checks, and without the size, which the offer copies. */
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
  const count = requestedGpuCount(resources);
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

interface NodeFit {
  readonly node: NodeFacts;
  /** Why no pod fits now, as a clause; undefined: one fits. */
  readonly why: string | undefined;
  /** Whether its GPUs would satisfy the request if they were free. */
  readonly isRightKind: boolean;
}

/** Nodes that the configuration allows; computed once per context. */
interface AllowedNodes {
  readonly selector: readonly (readonly [key: string, value: string])[];
  readonly tolerations: readonly Toleration[];
}

function checkNode(resources: Resources, allowed: AllowedNodes, size: PodSize, node: NodeFacts): NodeFit {
  const wrongKind = whyWrongGpus(resources, node);
  const why = wrongKind ?? whyNotAllowed(resources, allowed, node) ?? whyNoRoom(size, requestedGpuCount(resources), node);
  return { node, why, isRightKind: wrongKind === undefined };
}

function whyWrongGpus(resources: Resources, { gpu, whole }: NodeFacts): string | undefined {
  const count = requestedGpuCount(resources);
  if (count === 0) return undefined;
  if (whole.gpus === 0) return 'has no GPUs';
  if (gpu === undefined) return `has ${whole.gpus} GPUs, but no label that tells their kind`;
  const { accelerator, acceleratorMemory } = resources;
  const only = { ...forThePod(resources), maxHourlyCost: undefined, cloud: undefined, region: undefined, zone: undefined, useSpot: false };
  const gpuRequest = {
    ...only,
    accelerator: accelerator && { ...accelerator, count },
    acceleratorMemory: acceleratorMemory && { ...acceleratorMemory, count },
  };
  const as = { provider: 'kubernetes', region: '', zone: undefined, instanceType: '', cpus: 0, memoryGb: 0, spot: false, hourlyUsd: 0 };
  const wrong = whyNot(gpuRequest, { ...as, accelerator: { name: gpu.name, count, memoryGb: gpu.memoryGb } });
  if (wrong !== undefined) return `has ${whole.gpus}x ${gpu.name}`;
  return whole.gpus < count ? `has ${whole.gpus}x ${gpu.name}, ${count} requested` : undefined;
}

function whyNotAllowed({ useSpot }: Resources, { selector, tolerations }: AllowedNodes, node: NodeFacts): string | undefined {
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
  if (gpus > free.gpus) return `has ${free.gpus} of ${whole.gpus} ${gpu?.name ?? 'GPUs'} free, ${gpus} requested`;
  if (cpus > free.cpus) return `has ${amountLeft(free.cpus, whole.cpus)} CPUs free, ${cpus} requested`;
  if (memoryGb > free.memoryGb) return `has ${amountLeft(free.memoryGb, whole.memoryGb)} GB of memory free, ${memoryGb} requested`;
  return free.pods < 1 ? `has as many pods as it takes (${whole.pods})` : undefined;
}

/** Counts per node: a pod cannot use the free parts of two nodes. */
function roomFor({ cpus, memoryGb }: PodSize, accelerator: Offer['accelerator'], fits: readonly NodeFit[]): number {
  const fitting = fits.filter(({ node, why }) => why === undefined && (accelerator === undefined || node.gpu?.name === accelerator.name));
  return fitting.reduce((sum, { node: { free } }) => {
    const byGpu = accelerator === undefined ? Number.POSITIVE_INFINITY : times(free.gpus, accelerator.count);
    return sum + Math.min(times(free.cpus, cpus), times(free.memoryGb, memoryGb), byGpu, Math.floor(free.pods));
  }, 0);
}

/** How often `amount` fits into `free`. The addend absorbs rounding errors: 0.1 fits three times into 0.3. */
const times = (free: number, amount: number): number => Math.floor(free / amount + 1e-9);

/** One decimal, rounded down: a message must not promise more than is free. */
const shortly = (amount: number): number => Math.floor(amount * 10) / 10;
const amountLeft = (free: number, whole: number): string => `${shortly(free)} of ${shortly(whole)}`;

/** The kinds of GPUs that pods can get; `[undefined]` for a request without GPUs. Empty: no pod fits. */
function kindsOf(
  resources: Resources,
  config: KubernetesContextConfig,
  fits: readonly NodeFit[],
): readonly (Pick<GpuKind, 'name' | 'memoryGb'> | undefined)[] {
  const fitting = fits.filter(({ why }) => why === undefined);
  if (requestedGpuCount(resources) === 0) return fitting.length > 0 || config.autoscaler !== undefined ? [undefined] : [];
  const named = new Map<string, GpuKind>();
  // An autoscaler can add nodes of an existing kind, so kinds of occupied nodes count too.
  const counted = config.autoscaler === undefined ? fitting : fits.filter(({ isRightKind }) => isRightKind);
  for (const { node } of counted) if (node.gpu !== undefined) named.set(node.gpu.name, node.gpu);
  if (named.size > 0) return [...named.values()];
  return config.autoscaler === undefined ? [] : unseenKinds(resources);
}

/** When no known node has the requested kind. Empty without a kind, which the pod's node selector needs. */
function unseenKinds({ accelerator }: Resources): readonly Pick<GpuKind, 'name' | 'memoryGb'>[] {
  if (accelerator === undefined) return [];
  return [{ name: canonicalAccelerator(accelerator.name) ?? accelerator.name, memoryGb: undefined }];
}

/** For hidden nodes: the configuration must select the kind of GPUs, or have an autoscaler. */
function hiddenKinds(resources: Resources, config: KubernetesContextConfig): readonly (Pick<GpuKind, 'name' | 'memoryGb'> | undefined)[] {
  if (requestedGpuCount(resources) === 0) return [undefined];
  const selector = configuredSelector(config);
  const isSelected = gpuLabelFormats.some(({ key }) => selector[key] !== undefined);
  return isSelected || config.autoscaler !== undefined ? unseenKinds(resources) : [];
}

function whyNoNode(fits: readonly NodeFit[], isHidden: boolean): string {
  if (isHidden) return 'does not let its nodes be read, so their GPUs are unknown';
  if (fits.length === 0) return 'has no nodes';
  // Nearest match first: a full node with the right GPUs explains more than one without GPUs.
  const ordered = fits.toSorted(
    (a, b) => Number(b.isRightKind) - Number(a.isRightKind) || Number(b.node.closed === undefined) - Number(a.node.closed === undefined),
  );
  const shown = ordered.slice(0, shownNodes).map(({ node, why }) => `${node.name} ${why ?? 'fits'}`);
  const more = fits.length > shownNodes ? `, and ${fits.length - shownNodes} more` : '';
  return `has no such node (${shown.join(', ')}${more})`;
}

function rejectedNode({ node, why }: NodeFit, context: string): readonly RejectedOffer[] {
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

function requestText(resources: Resources): string {
  const { cpus, memory, accelerator, acceleratorMemory, useSpot } = resources;
  const size = requestedSize(resources);
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
