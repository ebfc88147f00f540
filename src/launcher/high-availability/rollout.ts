import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { podsOf, troubleOf } from './leader.ts';
import { haNames } from './names.ts';
import type { PodRole } from './object-parts.ts';
import { kubectlAt, type ClusterSite } from './site.ts';

/** What of a Deployment is read. */
export interface DeploymentObject extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly generation?: number };
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec?: { readonly containers?: readonly { readonly image?: string }[] } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
  };
}

/** Pulling an image of a hundred megabytes, and giving requests under way time to end, for one pod after the other, ms. */
const rolloutTimeoutMs = 600_000;
const pollMs = 1_000;
/** What a pod waits for may pass; when it has said the same for so long, ms, it does not. */
const patienceMs = 60_000;

/** Of one role's pods; undefined where there are none to be. */
export async function readDeployment(
  api: KubeApi,
  { namespace }: ClusterSite,
  role: PodRole,
  signal: AbortSignal,
): Promise<DeploymentObject | undefined> {
  return api.get<DeploymentObject>(pathOfOne('Deployment', namespace, haNames[role]), { signal });
}

/** Whether all pods are those that were asked for last, and work. */
export function isRolledOut({ metadata, spec, status = {} }: DeploymentObject): boolean {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, readyReplicas = 0 } = status;
  const wanted = spec?.replicas ?? 1;
  return observedGeneration >= (metadata.generation ?? 0) && [replicas, updatedReplicas, readyReplicas].every((count) => count === wanted);
}

/** Settles when the pods of both roles are the new ones. Throws SVC_CONTROLLER_START with what keeps one from running. */
export async function waitForRollout(site: ClusterSite, deps: ClusterDeps): Promise<void> {
  const { api, clock, signal, onStep } = deps;
  const watch = new TroubleWatch(site, deps);
  const deadline = clock.monotonic() + rolloutTimeoutMs;
  for (;;) {
    const [controller, balancer] = await Promise.all([
      readDeployment(api, site, 'controller', signal),
      readDeployment(api, site, 'balancer', signal),
    ]);
    if (controller !== undefined && balancer !== undefined && isRolledOut(controller) && isRolledOut(balancer)) return;
    onStep(await watch.look());
    if (clock.monotonic() > deadline) throw startError(`Its pods are not all running after ${rolloutTimeoutMs / 60_000} minutes.`, site);
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}

/** Notices what keeps pods from running, and when that does not pass by itself. */
export class TroubleWatch {
  readonly #site: ClusterSite;
  readonly #deps: ClusterDeps;
  /** Which pod does not run, and the kind of its trouble: its words change with each try. */
  #cause: string | undefined;
  #since = 0;

  constructor(site: ClusterSite, deps: ClusterDeps) {
    this.#site = site;
    this.#deps = deps;
  }

  /** What is waited for, for people. Throws SVC_CONTROLLER_START when waiting is in vain. */
  async look(): Promise<string> {
    const { api, signal, clock } = this.#deps;
    const pods = [...(await podsOf(api, this.#site, 'controller', signal)), ...(await podsOf(api, this.#site, 'balancer', signal))];
    for (const pod of pods) {
      const trouble = troubleOf(pod);
      if (trouble === undefined) continue;
      const text = `Pod ${pod.metadata.name}: ${trouble.text}`;
      const cause = `${pod.metadata.name}: ${trouble.kind}`;
      if (cause !== this.#cause) {
        this.#cause = cause;
        this.#since = clock.monotonic();
      }
      if (trouble.isLasting || clock.monotonic() - this.#since > patienceMs)
        throw startError(`${text}${await this.#lastWords(pod.metadata.name)}`, this.#site);
      return `Waiting for the pods of the controller: ${text}`;
    }
    this.#cause = undefined;
    return 'Waiting for the pods of the controller';
  }

  /** The last line that a pod's program wrote before it ended. */
  async #lastWords(pod: string): Promise<string> {
    const { api, signal } = this.#deps;
    const path = `${pathOfOne('Pod', this.#site.namespace, pod)}/log`;
    const text = await api.text(path, { query: { tailLines: '1', previous: 'true' }, signal }).catch(() => '');
    return text.trim() === '' ? '' : `; it said: ${text.trim().slice(0, 500)}`;
  }
}

function startError(text: string, site: ClusterSite): SvcError {
  const { context, namespace } = site;
  return new SvcError('SVC_CONTROLLER_START', `The controller in ${context}/${namespace} does not come up. ${text}`, {
    hint: `Mend the cause and run the command again; it goes on where it stopped. To see more: ${kubectlAt(site)} get pods,events. To remove it: svc controller down`,
  });
}
