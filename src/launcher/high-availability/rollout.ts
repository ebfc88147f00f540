import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import { podsOf, troubleOf } from './leader.ts';
import { haNames } from './names.ts';
import { podRoles, type PodRole } from './object-parts.ts';
import { kubectlAt, type KubernetesDeps, type KubernetesSite } from './site.ts';

interface DeploymentObject extends KubeObject {
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

/** ms. One after the other, each pod pulls an image of a hundred megabytes and lets its requests finish. */
const rolloutTimeoutMs = 600_000;
const pollMs = 1_000;
/** A pod's problem may pass. After this time, ms, it counts as permanent. */
const patienceMs = 60_000;

/** Undefined where the role has no Deployment. */
export async function readDeployment(
  api: KubeApi,
  { namespace }: KubernetesSite,
  role: PodRole,
  signal: AbortSignal,
): Promise<DeploymentObject | undefined> {
  return api.get<DeploymentObject>(pathOfOne('Deployment', namespace, haNames[role]), { signal });
}

/** Whether all pods have the latest template and are ready. */
export function isRolledOut({ metadata, spec, status = {} }: DeploymentObject): boolean {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, readyReplicas = 0 } = status;
  const desired = spec?.replicas ?? 1;
  return observedGeneration >= (metadata.generation ?? 0) && [replicas, updatedReplicas, readyReplicas].every((count) => count === desired);
}

/** Resolves when all roles' pods are new. Throws SVC_CONTROLLER_START with the problem of a pod that does not run. */
export async function waitForRollout(site: KubernetesSite, deps: KubernetesDeps): Promise<void> {
  const { api, clock, signal, onStep } = deps;
  const watch = new TroubleWatch(site, deps);
  const deadline = clock.monotonic() + rolloutTimeoutMs;
  for (;;) {
    const [controller, balancer, checker] = await Promise.all(podRoles.map((role) => readDeployment(api, site, role, signal)));
    const isDone = (one: DeploymentObject | undefined): boolean => one !== undefined && isRolledOut(one);
    // Older controllers have no health checkers.
    if (isDone(controller) && isDone(balancer) && (checker === undefined || isRolledOut(checker))) return;
    onStep(await watch.check());
    if (clock.monotonic() > deadline) throw startError(`Its pods are not all running after ${rolloutTimeoutMs / 60_000} minutes.`, site);
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}

/** Detects problems that keep pods from running, and when they are permanent. */
export class TroubleWatch {
  readonly #site: KubernetesSite;
  readonly #deps: KubernetesDeps;
  /** Failing pod and kind of problem: the message changes with each attempt. */
  #cause: string | undefined;
  #since = 0;

  constructor(site: KubernetesSite, deps: KubernetesDeps) {
    this.#site = site;
    this.#deps = deps;
  }

  /** The current wait, for people. Throws SVC_CONTROLLER_START for a permanent problem. */
  async check(): Promise<string> {
    const { api, signal, clock } = this.#deps;
    const pods = (await Promise.all(podRoles.map((role) => podsOf(api, this.#site, role, signal)))).flat();
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
        throw startError(`${text}${await this.#lastLogLine(pod.metadata.name)}`, this.#site);
      return `Waiting for the pods of the controller: ${text}`;
    }
    this.#cause = undefined;
    return 'Waiting for the pods of the controller';
  }

  async #lastLogLine(pod: string): Promise<string> {
    const { api, signal } = this.#deps;
    const path = `${pathOfOne('Pod', this.#site.namespace, pod)}/log`;
    const text = await api.text(path, { query: { tailLines: '1', previous: 'true' }, signal }).catch(() => '');
    return text.trim() === '' ? '' : `; it said: ${text.trim().slice(0, 500)}`;
  }
}

function startError(text: string, site: KubernetesSite): SvcError {
  const { context, namespace } = site;
  return new SvcError('SVC_CONTROLLER_START', `The controller in ${context}/${namespace} does not come up. ${text}`, {
    hint: `Correct the cause and run the command again; it goes on where it stopped. To see more: ${kubectlAt(site)} get pods,events. To remove it: svc controller down`,
  });
}
