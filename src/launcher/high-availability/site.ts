import type { Config } from '../../domain/config.ts';
import { kubernetesContextConfig, usableContexts } from '../../domain/kubernetes/kubernetes-context.ts';
import { kubeContexts, openKubeApi, type KubeContexts } from '../../kubernetes/contexts.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { settledStates, type Providers, type ProviderState } from '../../provision/providers.ts';
import { quoteWord } from '../../remote/shell-quote.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import type { Random } from '../../shared/random.ts';

/** The Kubernetes context and namespace of a controller. */
export interface KubernetesSite {
  readonly context: string;
  readonly namespace: string;
}

/** Start of a kubectl command for users. It names the context: their current one may be another. */
export function kubectlAt({ context, namespace }: KubernetesSite): string {
  return `kubectl --context ${quoteWord(context)} -n ${namespace}`;
}

/** Dependencies of functions that change a Kubernetes cluster and wait for the change. */
export interface KubernetesDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
}

/** With the rights of this command's user. A command has no lease, so it has no fence. */
export function kubeApiOpener(clock: Clock, random: Random): (site: KubernetesSite) => KubeApi {
  return ({ context, namespace }) => openKubeApi(context, { fence: noFence, clock, random, namespace });
}

const providerName = 'kubernetes';

/** Throws SVC_NEEDS_KUBERNETES unless a Kubernetes cluster can be used. Waits for a slow one, but no other provider. */
export async function needKubernetes(
  providers: Pick<Providers, 'states'>,
  onStep?: (text: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  const states = async (): Promise<readonly ProviderState[]> => (await providers.states()).filter(({ name }) => name === providerName);
  const [state] = await settledStates(states, onStep, signal);
  if (state?.provider !== undefined) return;
  const why = state === undefined ? '' : `: ${state.check.summary}`;
  throw new SvcError(
    'SVC_NEEDS_KUBERNETES',
    `serve.controller.high_availability is true, and no Kubernetes cluster can be used${why.replace(/\.$/, '')}.`,
    {
      hint: `A controller that survives its node runs in a cluster. Enable one (svc check ${providerName} says how), or remove high_availability from config.yaml.`,
    },
  );
}

/** Follows the configuration. Throws SVC_NEEDS_KUBERNETES when it leads to no existing context. */
export function chooseSite(config: Config, requestedContext: string | undefined, contexts: KubeContexts = kubeContexts()): KubernetesSite {
  const context = requestedContext ?? contextOf(config, contexts);
  const { namespace } = kubernetesContextConfig(config.kubernetes, context);
  return { context, namespace: namespace ?? contexts.cluster(context).namespace };
}

function contextOf({ serve, kubernetes }: Config, contexts: KubeContexts): string {
  const { resources } = serve.controller;
  const choices = resources?.choices ?? [];
  const named = choices.find(({ cloud, region }) => cloud === providerName && region !== undefined)?.region;
  if (named !== undefined) return named;
  const others = [...new Set(choices.flatMap(({ cloud }) => (cloud === undefined || cloud === providerName ? [] : [cloud])))];
  if (others.length > 0 && choices.every(({ cloud }) => cloud !== providerName && cloud !== undefined)) {
    throw new SvcError(
      'SVC_NEEDS_KUBERNETES',
      `serve.controller.high_availability is true, and serve.controller.resources asks for ${others.join(', ')}, where no controller survives its machine.`,
      { hint: 'Write infra: k8s or k8s/CONTEXT there, or remove high_availability from config.yaml.' },
    );
  }
  const usable = usableContexts(kubernetes, contexts);
  const chosen = usable.find((name) => name === contexts.current) ?? usable[0];
  if (chosen !== undefined) return chosen;
  throw new SvcError(
    'SVC_NEEDS_KUBERNETES',
    `serve.controller.high_availability is true, and no cluster is chosen for it (contexts: ${contexts.names.join(', ') || 'none'}).`,
    { hint: 'Name one in config.yaml: serve: {controller: {resources: {infra: k8s/CONTEXT}}}' },
  );
}
