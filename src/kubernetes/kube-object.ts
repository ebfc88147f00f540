import { isObject } from '../shared/is-object.ts';
import type { KubeObject } from './kube-api.ts';

// oxlint-disable typescript/no-unnecessary-type-parameters -- the caller names the kind that the path it asked for has
/** Whether something is an object of Kubernetes. What its kind looks like beyond that is the API server's promise, which is not checked. */
export function isKubeObject<T extends KubeObject>(value: unknown): value is T {
  return isObject(value) && isObject(value['metadata']);
}
