import { readinessRule } from '../../domain/kubernetes/kubernetes-role.ts';
import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { kubeStatusOf } from '../../kubernetes/kube-errors.ts';
import { isSelected, type LabelSelector } from '../../kubernetes/label-selector.ts';
import { budgetsPath, pathOf, podPath } from '../../kubernetes/paths.ts';
import { hasEnded, type Pod } from '../../kubernetes/pod.ts';
import { type PolicyVersion, readPolicyVersion } from '../../kubernetes/policy-version.ts';
import type { Clock } from '../../shared/clock.ts';
import type { ReadinessReport } from '../provider.ts';
import { isDenied } from './errors.ts';
import type { KubernetesClusters } from './kubernetes-clusters.ts';
import { budgetManifest } from './manifest.ts';
import { anchorName, readinessCondition, readMachineId, type MachineRef } from './names.ts';
import type { NamespaceRef } from './pod-watches.ts';
import { missingRights } from './rights.ts';

/** Whether the user may change the status of pods; false also when the Kubernetes cluster does not say. */
export async function mayReportReadiness(api: KubeApi, namespace: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    return (await missingRights(api, [readinessRule], namespace, signal)).length === 0;
  } catch (error) {
    if (kubeStatusOf(error) === undefined) throw error;
    return false;
  }
}

interface Budget extends KubeObject {
  readonly spec?: { readonly minAvailable?: number | string; readonly selector?: LabelSelector };
}

interface ReportedMachine {
  readonly ref: MachineRef;
  readonly isReady: boolean;
}

/** Reports a service's readiness to Kubernetes: the condition of its pods, and a PodDisruptionBudget per namespace. */
export class ReadinessReporter {
  readonly #clock: Clock;
  readonly #clusters: Pick<KubernetesClusters, 'cluster' | 'configOf'>;
  /** Namespaces by owner where a budget may exist, although the service has no machine there now. */
  readonly #reported = new Map<string, Map<string, NamespaceRef>>();
  readonly #versions = new Map<string, PolicyVersion>();

  constructor(clock: Clock, clusters: Pick<KubernetesClusters, 'cluster' | 'configOf'>) {
    this.#clock = clock;
    this.#clusters = clusters;
  }

  /** Throws the first failure after all namespaces were tried. A missing right is none: `svc check` reports it. */
  async report(report: ReadinessReport, signal: AbortSignal | undefined): Promise<void> {
    const machines = report.machines.flatMap(({ id, isReady }): readonly ReportedMachine[] => {
      const ref = readMachineId(id);
      return ref === undefined ? [] : [{ ref, isReady }];
    });
    const namespaces = this.#reported.get(report.ownerKey) ?? new Map<string, NamespaceRef>();
    this.#reported.set(report.ownerKey, namespaces);
    for (const { ref } of machines) namespaces.set(keyOf(ref), ref);
    const results = await Promise.allSettled(
      [...namespaces].map(async ([key, namespace]) => {
        const inside = machines.filter(({ ref }) => keyOf(ref) === key);
        await this.#inNamespace(report, namespace, inside, signal);
        if (inside.length === 0) namespaces.delete(key);
      }),
    );
    if (machines.length === 0 && namespaces.size === 0) this.#reported.delete(report.ownerKey);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  async #inNamespace(
    { ownerKey, disruption }: ReadinessReport,
    { context, namespace }: NamespaceRef,
    machines: readonly ReportedMachine[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const cluster = await this.#clusters.cluster(context);
    const { api } = cluster;
    const bases = machines.map(({ ref }) => ref.base);
    const found = await cluster.currentPods(namespace, bases, signal);
    const pods = machines.flatMap(({ ref, isReady }) => (found.get(ref.base) ?? []).filter(isLiving).map((pod) => ({ pod, isReady })));
    const ready = pods.filter(({ isReady }) => isReady).length;
    const minAvailable = disruption === 'any' ? 0 : Math.max(0, ready - (disruption === 'one' ? 1 : 0));
    // First: until Kubernetes has counted a new ready pod, the budget allows fewer evictions than desired, not more.
    const budget = this.#keepBudget(api, { ownerKey, namespace, minAvailable, pods: pods.map(({ pod }) => pod) }, signal);
    const [kept] = await Promise.allSettled([ifPossible(budget)]);
    // Also without a budget: pods with the gate get requests of other Services only when they are ready.
    await ifPossible(Promise.all(pods.map(({ pod, isReady }) => this.#setCondition(api, pod, isReady, signal))));
    if (kept.status === 'rejected') throw kept.reason;
  }

  /**
   * No budget where it would allow the loss of all ready pods: with `minAvailable: 0` Kubernetes refuses to evict a pod
   * that is not ready. Also none beside a budget of a user: the eviction of a pod with two budgets is an error.
   */
  async #keepBudget(
    api: KubeApi,
    { ownerKey, namespace, minAvailable, pods }: BudgetInput,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const version = await this.#policyVersion(api, signal);
    const { items } = await api.list<Budget>(budgetsPath(version, namespace), { signal });
    const own = items.find(({ metadata }) => metadata.name === anchorName(ownerKey));
    const others = items.filter((budget) => budget !== own).flatMap(({ spec }) => spec?.selector ?? []);
    const hasOther = others.some((selector) => pods.some(({ metadata }) => isSelected(selector, metadata.labels ?? {})));
    const anchor = pods.flatMap(({ metadata }) => metadata.ownerReferences ?? []).find(({ kind }) => kind === 'ConfigMap');
    if (minAvailable === 0 || hasOther || anchor === undefined) {
      if (own !== undefined) await api.remove(`${budgetsPath(version, namespace)}/${own.metadata.name}`, { signal });
      return;
    }
    if (own?.spec?.minAvailable === minAvailable) return;
    const config = await this.#clusters.configOf(api.context);
    const budget = budgetManifest({ version, owner: ownerKey, minAvailable, config, namespace, anchor });
    await api.apply(pathOf(budget), budget, { signal });
  }

  async #policyVersion(api: KubeApi, signal: AbortSignal | undefined): Promise<PolicyVersion> {
    const version = this.#versions.get(api.context) ?? (await readPolicyVersion(api, signal));
    this.#versions.set(api.context, version);
    return version;
  }

  /** Pods without the gate keep Kubernetes' own readiness. */
  async #setCondition(api: KubeApi, { metadata, spec, status }: Pod, isReady: boolean, signal: AbortSignal | undefined): Promise<void> {
    if (spec?.readinessGates?.some(({ conditionType }) => conditionType === readinessCondition) !== true) return;
    const before = status?.conditions?.find(({ type }) => type === readinessCondition);
    const wanted = isReady ? 'True' : 'False';
    if (before?.status === wanted) return;
    const condition = {
      type: readinessCondition,
      status: wanted,
      reason: isReady ? 'ReplicaReady' : 'ReplicaNotReady',
      message: isReady ? '' : 'svc sends this replica no requests: see svc serve status',
      lastTransitionTime: new Date(this.#clock.now()).toISOString(),
    };
    const { name, namespace = '', uid } = metadata;
    const change = { metadata: { uid }, status: { conditions: [condition] } };
    await api.merge(podPath({ namespace, name }, 'status'), change, { isStrategic: true, signal });
  }
}

interface BudgetInput {
  readonly ownerKey: string;
  readonly namespace: string;
  readonly minAvailable: number;
  readonly pods: readonly Pod[];
}

const keyOf = ({ context, namespace }: NamespaceRef): string => `${context}/${namespace}`;

const isLiving = (pod: Pod): boolean => pod.metadata.deletionTimestamp === undefined && !hasEnded(pod);

/** The user may lack an optional right. Before 1.21 the Kubernetes cluster may lack the API of budgets. */
async function ifPossible(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isDenied(error) && kubeStatusOf(error)?.code !== 404) throw error;
  }
}
