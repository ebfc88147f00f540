import type { ContainerSpec, Pod, Quantities } from './pod.ts';

const suffixes: Readonly<Record<string, number>> = {
  '': 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Kubernetes' notation (`500m`, `2Gi`, `1e3`, 4) as a number; undefined when invalid. */
export function parseQuantity(quantity: string | number | undefined): number | undefined {
  if (typeof quantity === 'number') return quantity;
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(quantity?.trim() ?? '');
  const factor = match === null ? undefined : suffixes[match[2] ?? ''];
  return match === null || factor === undefined ? undefined : Number(match[1]) * factor;
}

type Amounts = ReadonlyMap<string, number>;

/** Leaves out unreadable quantities. */
export function readQuantities(quantities: Quantities | undefined): Amounts {
  const amounts = new Map<string, number>();
  for (const name in quantities) {
    const amount = parseQuantity(quantities[name]);
    if (amount !== undefined) amounts.set(name, amount);
  }
  return amounts;
}

/**
 * What the scheduler reserves for a pod: the sum of its containers or its largest init container, whichever is more,
 * plus the overhead. Sidecars (init containers with `restartPolicy: Always`) count with both. Pod-level requests have
 * precedence.
 */
export function podRequests(pod: Pod): Amounts {
  const { containers = [], initContainers = [], overhead, resources } = pod.spec ?? {};
  const requested = actualRequests(pod);
  const sidecars = new Map<string, number>();
  const before = new Map<string, number>();
  for (const container of initContainers) {
    const own = requested(container);
    if (container.restartPolicy === 'Always') add(sidecars, own);
    const together = new Map(container.restartPolicy === 'Always' ? [] : own);
    add(together, sidecars);
    raise(before, together);
  }
  const total = new Map(sidecars);
  for (const container of containers) add(total, requested(container));
  raise(total, before);
  for (const [name, amount] of readQuantities(resources?.requests)) total.set(name, amount);
  add(total, readQuantities(overhead));
  return total;
}

/** Reserved now: during a resize, the larger of both amounts. A resize that its node rejected for good is ignored. */
function actualRequests({ status = {} }: Pod): (container: ContainerSpec) => Amounts {
  const isRefused = status.conditions?.some(({ type, reason }) => type === 'PodResizePending' && reason === 'Infeasible') === true;
  const byName = new Map([...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map((one) => [one.name, one]));
  return (container) => {
    const asked = requestsOf(container);
    const now = byName.get(container.name ?? '');
    if (now?.resources?.requests === undefined && now?.allocatedResources === undefined) return asked;
    const amounts = new Map(isRefused ? [] : asked);
    raise(amounts, readQuantities(now.resources?.requests));
    raise(amounts, readQuantities(now.allocatedResources));
    // The node does not report every resource.
    for (const [name, amount] of asked) if (!amounts.has(name)) amounts.set(name, amount);
    return amounts;
  };
}

/** A limit without a request is also the request. API servers fill it in; pods may not be processed yet. */
function requestsOf({ resources }: ContainerSpec): Amounts {
  return readQuantities({ ...resources?.limits, ...resources?.requests });
}

function raise(to: Map<string, number>, amounts: Amounts): void {
  for (const [name, amount] of amounts) to.set(name, Math.max(to.get(name) ?? 0, amount));
}

function add(to: Map<string, number>, amounts: Amounts): void {
  for (const [name, amount] of amounts) to.set(name, (to.get(name) ?? 0) + amount);
}
