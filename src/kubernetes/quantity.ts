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

/** Bytes of a GB in svc's files: the unit of graphics drivers and of SkyPilot's catalogue. */
export const bytesPerGb = 2 ** 30;

/** An amount in Kubernetes' notation (`500m`, `2Gi`, `1e3`, 4) as a number; undefined when it is invalid. */
export function parseQuantity(quantity: string | number | undefined): number | undefined {
  if (typeof quantity === 'number') return quantity;
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(quantity?.trim() ?? '');
  const factor = match === null ? undefined : suffixes[match[2] ?? ''];
  return match === null || factor === undefined ? undefined : Number(match[1]) * factor;
}

/** Amounts of every resource, as numbers. */
type Amounts = ReadonlyMap<string, number>;

/** Quantities as numbers; unreadable ones are left out. */
export function readQuantities(quantities: Quantities | undefined): Amounts {
  const amounts = new Map<string, number>();
  for (const name in quantities) {
    const amount = parseQuantity(quantities[name]);
    if (amount !== undefined) amounts.set(name, amount);
  }
  return amounts;
}

/**
 * The scheduler's reservation for a pod: the sum of its containers or the largest init container, whichever is more,
 * plus the pod's overhead. Sidecars (init containers with `restartPolicy: Always`) count with both. Pod-level requests
 * take precedence.
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

/**
 * What containers have reserved now. While a running container is being resized, the larger of the old and the new
 * amounts counts. A resize that its node rejected for good does not count.
 */
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
    // For resources that the node does not report, the requested amount counts.
    for (const [name, amount] of asked) if (!amounts.has(name)) amounts.set(name, amount);
    return amounts;
  };
}

/**
 * A limit without a request is also the request. API servers fill it in; this does the same for pods that they have not
 * processed.
 */
function requestsOf({ resources }: ContainerSpec): Amounts {
  return readQuantities({ ...resources?.limits, ...resources?.requests });
}

function raise(to: Map<string, number>, amounts: Amounts): void {
  for (const [name, amount] of amounts) to.set(name, Math.max(to.get(name) ?? 0, amount));
}

function add(to: Map<string, number>, amounts: Amounts): void {
  for (const [name, amount] of amounts) to.set(name, (to.get(name) ?? 0) + amount);
}
