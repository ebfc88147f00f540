import type { StaticOperationSchema } from '@smithy/types';
import type { AccessKey } from '../sigv4/key-ring.ts';

/** The caller and the region of a call. */
export interface Caller {
  readonly key: AccessKey;
  readonly region: string;
  /** All parameters as text except ClientToken and DryRun: identical for a retried request. */
  readonly fingerprint: string;
}

/** One operation of a service: its shapes as the SDK has them, and its implementation. */
export interface Action {
  readonly name: string;
  readonly operation: StaticOperationSchema;
  /** Throws `ApiError` to refuse. */
  run(input: object, caller: Caller): object | Promise<object>;
}

/**
 * Pairs an operation with its implementation. Input and output have the SDK's types of the operation's shapes, which
 * also drive the codecs.
 */
export function action(operation: StaticOperationSchema, run: Action['run']): Action {
  return { name: operation[2], operation, run };
}

/**
 * Reads an action's parameters and reports the given ones that the action never read: the emulator would ignore them
 * silently.
 */
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
