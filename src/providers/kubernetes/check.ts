import type { Clock } from '../../shared/clock.ts';
import { withLateness } from '../../shared/deadline.ts';
import { SvcError, messageOf } from '../../shared/errors.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { type CheckFinding, checkOf, lateFinding } from '../check-finding.ts';
import type { ProviderCheck } from '../provider.ts';
import type { NodeSurvey } from './kubernetes-cluster.ts';
import type { KubernetesClusters } from './kubernetes-clusters.ts';
import type { NodeFacts } from './nodes/node-facts.ts';
import { missingRights, rightNames } from './rights.ts';
import { versionPath } from '../../kubernetes/paths.ts';
import { clusterReadRules, foresightRules, replicaRules } from '../../domain/kubernetes/kubernetes-role.ts';

/** Limit of a check, ms. Callers wait for ten seconds. */
const checkMs = 9_000;

/** Limit for facts that are only displayed, ms. */
const factsMs = 5_000;

/** Checks the contexts for `svc check`. */
export async function checkKubernetes(
  clusters: KubernetesClusters,
  hasMachines: boolean,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<ProviderCheck> {
  const off = (summary: string, ...remedies: readonly string[]): ProviderCheck => ({
    // Machines in unreachable Kubernetes clusters still belong to this home, so callers must go on polling.
    enabled: hasMachines,
    summary,
    remedies,
    details: [],
    sharedPorts: undefined,
  });
  let names: readonly string[];
  let usable: readonly string[];
  try {
    ({ names, usable } = await clusters.known());
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return off(error.message, error.hint);
  }
  if (names.length === 0)
    return off('no kubeconfig with a context', 'To use a cluster, have a kubeconfig for it: docs/clouds/kubernetes.md');
  const { allowedContexts } = await clusters.config();
  const missing = Array.isArray(allowedContexts) ? allowedContexts.filter((name) => !names.includes(name)) : [];
  const forMissing = missing.map(
    (name) => `kubernetes.allowed_contexts names ${name}, which the kubeconfig does not have (it has ${names.join(', ')}).`,
  );
  if (usable.length === 0) {
    const remedy = 'Choose one with: kubectl config use-context NAME; or list them as kubernetes.allowed_contexts in config.yaml.';
    return off(`none of the contexts of the kubeconfig may be used (${names.join(', ')})`, ...forMissing, remedy);
  }
  const checkAll = (late: Promise<undefined>) =>
    withLateness(clock, factsMs, (factsLate) =>
      Promise.all(usable.map((name) => checkContext(clusters, name, { late, factsLate }, signal))),
    );
  const { usable: good, remedies, ...found } = checkOf(usable, await withLateness(clock, checkMs, checkAll, signal), checkMs);
  return {
    enabled: good > 0 || hasMachines,
    summary: `${good} of ${usable.length} context${usable.length === 1 ? '' : 's'} can be used`,
    remedies: [...forMissing, ...remedies],
    sharedPorts: undefined,
    ...found,
  };
}

async function checkContext(
  clusters: KubernetesClusters,
  name: string,
  { late, factsLate }: { readonly late: Promise<undefined>; readonly factsLate: Promise<undefined> },
  signal: AbortSignal | undefined,
): Promise<CheckFinding> {
  try {
    const finding = await Promise.race([inspectContext(clusters, name, factsLate, signal), late]);
    return finding ?? lateFinding(checkMs);
  } catch (error) {
    signal?.throwIfAborted();
    const remedies = error instanceof SvcError ? [`${name}: ${error.hint}`] : [];
    return { isUsable: false, text: messageOf(error), remedies };
  }
}

async function inspectContext(
  clusters: KubernetesClusters,
  name: string,
  factsLate: Promise<undefined>,
  signal: AbortSignal | undefined,
): Promise<CheckFinding> {
  const cluster = await clusters.cluster(name);
  const namespace = await clusters.namespaceOf(name);
  const [version, missingInNamespace, survey, missingRead = []] = await Promise.all([
    versionOf(cluster.api, signal),
    missingRights(cluster.api, [...replicaRules, ...foresightRules], namespace, signal),
    Promise.race([cluster.survey(signal), factsLate]),
    Promise.race([missingRights(cluster.api, clusterReadRules, undefined, signal), factsLate]),
  ]);
  const spared = rightNames(foresightRules);
  const missing = missingInNamespace.filter((right) => !spared.includes(right));
  const missingForesight = missingInNamespace.filter((right) => spared.includes(right));
  const roleCommand = `svc check kubernetes --role | kubectl --context ${name} apply -f -`;
  const remedies = [
    ...(missing.length === 0
      ? []
      : [
          `${name}: the user may not ${missing.join(', ')} in the namespace ${namespace}; make the role with: ${roleCommand}; then bind it as it says.`,
        ]),
    ...(missingForesight.length === 0
      ? []
      : [
          `${name}: the user may not ${missingForesight.join(', ')} in the namespace ${namespace}: ${lossOf(missingForesight)}. The role is shown by: svc check kubernetes --role`,
        ]),
    ...(missingRead.length === 0
      ? []
      : [
          `${name}: the user may not ${missingRead.join(', ')} of the cluster: whether there is room, only the scheduler knows, and GPUs are not found. The role is shown by: svc check kubernetes --role`,
        ]),
    ...(survey !== undefined && 'nodes' in survey ? unlabelled(name, survey.nodes) : []),
  ];
  const parts = [version, `namespace ${namespace}`, describeSurvey(survey)];
  return {
    isUsable: missing.length === 0,
    text: [...parts, ...(missing.length === 0 ? [] : ['rights are missing'])].join(', '),
    remedies,
  };
}

/** What svc cannot do without some of the optional rights. */
function lossOf(missing: readonly string[]): string {
  const losses = [
    ['persistentvolumeclaims', 'a missing volume shows only with the first replica'],
    ['resourcequotas', 'a quota that has room again shows after a pause'],
    ['pods/status', 'a pod is ready as soon as its containers run, whatever the readiness probe says'],
    ['poddisruptionbudgets', 'the drain of a node ends all of its replicas at once'],
  ] as const;
  return losses.flatMap(([resource, loss]) => (missing.some((right) => right.endsWith(` ${resource}`)) ? [loss] : [])).join('; ');
}

async function versionOf(api: KubeApi, signal: AbortSignal | undefined): Promise<string> {
  const version = parseJson(await api.text(versionPath, { signal }));
  const said = isObject(version) ? version['gitVersion'] : undefined;
  return typeof said === 'string' ? `Kubernetes ${said}` : 'Kubernetes of an unknown version';
}

function describeSurvey(survey: NodeSurvey | undefined): string {
  if (survey === undefined) return `nodes: no answer within ${factsMs / 1_000} s yet`;
  if ('hidden' in survey) return 'nodes may not be read';
  const open = survey.nodes.filter(({ closed }) => closed === undefined);
  const sum = (of: (node: NodeFacts) => number): number => Math.floor(open.reduce((total, node) => total + of(node), 0) * 10) / 10;
  const counted = open.length === survey.nodes.length ? `${open.length}` : `${open.length} of ${survey.nodes.length}`;
  const cpus = `${sum(({ free }) => free.cpus)} of ${sum(({ whole }) => whole.cpus)} CPUs`;
  const memory = `${sum(({ free }) => free.memoryGb)} of ${sum(({ whole }) => whole.memoryGb)} GB free`;
  return `${counted} node${survey.nodes.length === 1 ? '' : 's'}, ${cpus} and ${memory}, GPUs: ${describeGpus(open)}`;
}

/** `4 of 8 L4 (GKE labels)`. */
function describeGpus(nodes: readonly NodeFacts[]): string {
  const kinds = Map.groupBy(
    nodes.filter(({ whole }) => whole.gpus > 0),
    ({ gpu }) => (gpu === undefined ? 'of no known kind' : `${gpu.name} (labels of ${gpu.format.name})`),
  );
  const texts = [...kinds].map(([kind, having]) => {
    const sum = (of: (node: NodeFacts) => number): number => having.reduce((total, node) => total + of(node), 0);
    return `${sum(({ free }) => free.gpus)} of ${sum(({ whole }) => whole.gpus)} ${kind} free`;
  });
  return texts.join(', ') || 'none';
}

function unlabelled(name: string, nodes: readonly NodeFacts[]): readonly string[] {
  const dumb = nodes.filter(({ whole, gpu }) => whole.gpus > 0 && gpu === undefined).map((node) => node.name);
  if (dumb.length === 0) return [];
  const shown = dumb.slice(0, 3).join(' ');
  return [
    `${name}: nodes with GPUs have no label that tells their kind (${dumb.length}); name it, for instance: kubectl --context ${name} label node ${shown} svc.dev/accelerator=L4`,
  ];
}
