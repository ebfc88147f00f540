import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import type { RoleRule } from '../../domain/kubernetes/kubernetes-role.ts';

interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

interface RulesReview extends KubeObject {
  readonly status?: {
    readonly resourceRules?: readonly {
      readonly verbs: readonly string[];
      readonly apiGroups?: readonly string[];
      readonly resources?: readonly string[];
      readonly resourceNames?: readonly string[];
    }[];
  };
}

interface AccessReview extends KubeObject {
  readonly status?: { readonly allowed?: boolean };
}

/**
 * The rights that the user lacks, such as `create pods`; `namespace` undefined: in the whole Kubernetes cluster. Asks
 * one by one for rights that the list of a namespace leaves open, as with authorizers beside RBAC.
 */
export async function missingRights(
  api: KubeApi,
  rules: readonly RoleRule[],
  namespace: string | undefined,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const required = rules.flatMap((rule) => rightsOf(rule));
  const listed = namespace === undefined ? () => false : await listedRights(api, namespace, signal);
  const answers = await Promise.all(
    required.filter((right) => !listed(right)).map(async (right) => ({ right, isAllowed: await isAllowed(api, right, namespace, signal) })),
  );
  return answers.flatMap(({ right, isAllowed: allowed }) => (allowed ? [] : [rightName(right)]));
}

/** The rights of some rules, as `missingRights` names them. */
export function rightNames(rules: readonly RoleRule[]): readonly string[] {
  return rules.flatMap((rule) => rightsOf(rule)).map((right) => rightName(right));
}

const rightName = ({ verb, resource }: Right): string => `${verb} ${resource}`;

function rightsOf({ apiGroups, resources, verbs }: RoleRule): readonly Right[] {
  return resources.flatMap((resource) => verbs.map((verb) => ({ group: apiGroups[0] ?? '', resource, verb })));
}

const has = (values: readonly string[] | undefined, ...names: readonly string[]): boolean =>
  values?.some((value) => value === '*' || names.includes(value)) ?? false;

async function listedRights(api: KubeApi, namespace: string, signal: AbortSignal | undefined): Promise<(right: Right) => boolean> {
  const review = await api.create<RulesReview>(
    pathOfAll('SelfSubjectRulesReview'),
    { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', metadata: { name: '' }, spec: { namespace } },
    { signal },
  );
  const rules = (review?.status?.resourceRules ?? []).filter(({ resourceNames = [] }) => resourceNames.length === 0);
  return ({ group, resource, verb }) =>
    rules.some(
      (rule) => has(rule.verbs, verb) && has(rule.apiGroups, group) && has(rule.resources, resource, `*/${resource.split('/')[1] ?? ''}`),
    );
}

/** Whether the user has a right; `namespace` undefined: in the whole Kubernetes cluster. */
async function isAllowed(api: KubeApi, right: Right, namespace: string | undefined, signal: AbortSignal | undefined): Promise<boolean> {
  const [resource, subresource] = right.resource.split('/');
  const resourceAttributes = {
    group: right.group,
    verb: right.verb,
    resource,
    ...(subresource !== undefined && { subresource }),
    ...(namespace !== undefined && { namespace }),
  };
  const review = await api.create<AccessReview>(
    pathOfAll('SelfSubjectAccessReview'),
    { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', metadata: { name: '' }, spec: { resourceAttributes } },
    { signal },
  );
  return review?.status?.allowed === true;
}
