/** An edge proxy as a health checker sees it. */
export interface SeenProxy {
  readonly name: string;
  /** Whether its label makes the Service send requests to it. */
  readonly isServing: boolean;
  /** Whether its label says that no other edge proxy serves. */
  readonly isAlone: boolean;
  readonly isGoing: boolean;
  /** Consecutive checks in which the edge proxy did not report that it can serve. */
  readonly failures: number;
  /** Whether the edge proxy answered the last check, even with "cannot serve". */
  readonly answers: boolean;
  /** How long the edge proxy has been without the serving label, ms. */
  readonly outForMs: number;
}

/** A change of the labels of an edge proxy. */
export interface ProxyLabels {
  readonly name: string;
  readonly isServing?: boolean;
  readonly isAlone?: boolean;
}

/** The health checker removes an edge proxy from the Service after this many failed checks in a row. */
export const silentAfter = 3;

/**
 * Wait before a removed edge proxy is added again, ms. Without it, an edge proxy that only some checkers reach would
 * change its label constantly. After this time without a serving one, edge proxies may serve without an endpoint set.
 */
export const backAfterMs = 2_000;

/**
 * Decides which labels change now. The Service selects pods by them alone: Kubernetes marks a pod as not ready as soon
 * as its node is silent, although the pod still serves.
 * - An edge proxy that fails its checks or is about to end is removed, but only while another one serves. So at least
 *   one always serves, whatever the checker reaches.
 * - An edge proxy that passes its checks is added.
 * - While no edge proxy serves (`idleForMs`), those that answer get the label `alone`.
 */
export function decideLabels(proxies: readonly SeenProxy[], idleForMs: number): readonly ProxyLabels[] {
  const active = activeProxies(proxies);
  return proxies.flatMap((proxy): readonly ProxyLabels[] => {
    const isServing = mayServe(proxy, active);
    const isWaiting = proxy.answers && proxy.failures > 0 && !proxy.isGoing;
    const isAlone = active.length === 0 && idleForMs >= backAfterMs && isWaiting;
    if (isServing === proxy.isServing && isAlone === proxy.isAlone) return [];
    return [{ name: proxy.name, ...(isServing !== proxy.isServing && { isServing }), ...(isAlone !== proxy.isAlone && { isAlone }) }];
  });
}

/** The edge proxies that get requests and can serve them. */
export function activeProxies(proxies: readonly SeenProxy[]): readonly SeenProxy[] {
  return proxies.filter(({ isServing, isGoing, failures }) => isServing && !isGoing && failures === 0);
}

function mayServe(proxy: SeenProxy, active: readonly SeenProxy[]): boolean {
  if (proxy.isServing) return (proxy.failures < silentAfter && !proxy.isGoing) || !active.some((other) => other !== proxy);
  return proxy.failures === 0 && !proxy.isGoing && (proxy.outForMs >= backAfterMs || active.length === 0);
}

/** An edge proxy's own state. */
export interface OwnState {
  /** It serves all services that the controller assigned to it, and is not about to end. */
  readonly isReady: boolean;
  /** Each of its balancers has an endpoint set from the reconciler or from disk. The set may be empty. */
  readonly isInformed: boolean;
  readonly isAlone: boolean;
  /** It has passed its readiness probe before. */
  readonly wasAdmitted: boolean;
}

/**
 * Whether an edge proxy can forward requests and so gets them. Without an endpoint set it would hold requests that
 * others can forward; when it is alone, holding them is better than failing them. Once admitted, it stays admitted
 * while a new service has no endpoint set.
 */
export function passesReadiness({ isReady, isInformed, isAlone, wasAdmitted }: OwnState): boolean {
  return isReady && (isInformed || isAlone || wasAdmitted);
}
