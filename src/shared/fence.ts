/**
 * Whether this process may still act for the controller. Of several controllers only the one that holds the lease may call a place; one that was
 * paused may have lost it without knowing. Asked right before each call is sent, without waiting for anything.
 */
export interface Fence {
  /** Throws SVC_NOT_LEADER when the lease has run out, or may have. */
  check(): void;
}

/** For a controller that has no rival. */
export const noFence: Fence = { check: () => undefined };

/** What is different for some methods of a fenced object. */
export interface FencedMethods<Target> {
  /** Those that call nobody. */
  readonly free?: readonly (keyof Target)[];
  /** Those that give something which has to be fenced as well. */
  readonly wrap?: {
    readonly [Name in keyof Target]?: (result: ReturnType<Extract<Target[Name], (...args: never) => unknown>>) => unknown;
  };
}

/** The same object, but each of its methods checks the fence before it does anything. */
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
