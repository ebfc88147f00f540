/**
 * Checks whether this process may still act for the controller: of several, only the leader may call a provider. A
 * paused process may have lost the lease without noticing. So call `check` synchronously, right before each call.
 */
export interface Fence {
  /** Throws SVC_NOT_LEADER when the lease has run out, or may have. */
  check(): void;
}

/** For a controller without rivals. */
export const noFence: Fence = { check: () => undefined };

interface FencedMethods<Target> {
  /** Methods without calls to a provider. */
  readonly free?: readonly (keyof Target)[];
  /** Methods whose results must be fenced too. */
  readonly wrap?: {
    readonly [Name in keyof Target]?: (result: ReturnType<Extract<Target[Name], (...args: never) => unknown>>) => unknown;
  };
}

/** The same object, but each method checks the fence first. */
export function fenced<Target extends object>(target: Target, fence: Fence, { free = [], wrap = {} }: FencedMethods<Target> = {}): Target {
  if (fence === noFence) return target;
  const isFree = new Set<PropertyKey>(free);
  const wraps = new Map<PropertyKey, unknown>(Object.entries(wrap));
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const wrapResult = wraps.get(name);
      return (...args: readonly unknown[]): unknown => {
        if (!isFree.has(name)) fence.check();
        const result: unknown = Reflect.apply(value, target, args);
        return typeof wrapResult === 'function' ? wrapResult(result) : result;
      };
    },
  });
}
