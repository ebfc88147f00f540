import { isObject, parseJson } from '../shared/json.ts';
import type { KubeApi } from './kube-api.ts';

/** API version of PodDisruptionBudgets: `policy/v1` from Kubernetes 1.21 on. */
export type PolicyVersion = 'policy/v1' | 'policy/v1beta1';

/** Reads the version from the API server's groups. */
export async function readPolicyVersion(api: Pick<KubeApi, 'text'>, signal: AbortSignal | undefined): Promise<PolicyVersion> {
  const said = parseJson(await api.text('/apis', { signal }));
  const groups = isObject(said) && Array.isArray(said['groups']) ? said['groups'] : [];
  const policy = groups.find((group) => isObject(group) && group['name'] === 'policy');
  return JSON.stringify(policy ?? '').includes('"policy/v1"') || policy === undefined ? 'policy/v1' : 'policy/v1beta1';
}
