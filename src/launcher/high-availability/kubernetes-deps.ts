import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import { openKubeApi } from '../../kubernetes/contexts.ts';
import { noFence } from '../../shared/fence.ts';
import type { Random } from '../../shared/random.ts';
import type { KubernetesSite } from './site.ts';

/** Dependencies of functions that change a Kubernetes cluster and wait for the change. */
export interface KubernetesDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Shows the current step to the user. */
  readonly onStep: (text: string) => void;
}

/** Opens the API of a Kubernetes cluster as the user of this command. A command has no lease, so it has no fence. */
export function kubeApiOpener(clock: Clock, random: Random): (site: KubernetesSite) => KubeApi {
  return ({ context, namespace }) => openKubeApi(context, { fence: noFence, clock, random, namespace });
}
