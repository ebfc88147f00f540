import type { StaticOperationSchema } from '@smithy/types';
import type { AccessKey } from '../sigv4/key-ring.ts';

/** Who calls, where. */
export interface Caller {
  readonly key: AccessKey;
  readonly region: string;
  /** All parameters as text but ClientToken and DryRun: the same for a request that is sent again. */
  readonly fingerprint: string;
}

/** One operation of a service: its shapes as the SDK has them, and what it does. */
export interface Action {
  readonly name: string;
  readonly operation: StaticOperationSchema;
  /** Throws `ApiError` to refuse. */
  run(input: object, caller: Caller): object | Promise<object>;
}

/** Pairs an operation with its implementation, which takes and gives the SDK's types for the operation's shapes: the codecs read and write by them. */
export function action(operation: StaticOperationSchema, run: Action['run']): Action {
  return { name: operation[2], operation, run };
}

/** Reads an action's parameters and tells which of the given ones it did not look at: they would be passed over in silence. */
export function watchReads(input: object): { readonly input: object; readonly unread: () => readonly string[] } {
  const unread = new Set(Object.keys(input));
  const watched = new Proxy(input, {
    get(target, name, receiver) {
      if (typeof name === 'string') unread.delete(name);
      return Reflect.get(target, name, receiver);
    },
  });
  return { input: watched, unread: () => [...unread] };
}
