import { isObject } from '../shared/is-object.ts';
import type { KubeObject } from './kube-api.ts';

// oxlint-disable typescript/no-unnecessary-type-parameters -- the caller names the kind that the path it asked for has
/** Whether a value is an object of Kubernetes. Fields of its kind are trusted to the API server and not checked. */
export function isKubeObject<T extends KubeObject>(value: unknown): value is T {
  return isObject(value) && isObject(value['metadata']);
}
