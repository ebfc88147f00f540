import type { Config } from '../../domain/config.ts';
import { kubernetesContextConfig, usableContexts } from '../../domain/kubernetes-context.ts';
import { kubeContexts, type KubeContexts } from '../../kubernetes/contexts.ts';
import type { Places } from '../../provision/places.ts';
import { quoteWord } from '../../remote/shell-quote.ts';
import { SvcError } from '../../shared/errors.ts';

/** Where in which cluster a controller is. */
export interface ClusterSite {
  readonly context: string;
  readonly namespace: string;
}

/** The beginning of a command that somebody else is to run on it: their kubectl may be at another cluster. */
export function kubectlAt({ context, namespace }: ClusterSite): string {
  return `kubectl --context ${quoteWord(context)} -n ${namespace}`;
}

const place = 'kubernetes';

/** Throws SVC_NEEDS_KUBERNETES unless a Kubernetes place is enabled. */
export async function needKubernetes(places: Pick<Places, 'states'>): Promise<void> {
  const state = (await places.states()).find(({ name }) => name === place);
  if (state?.provider !== undefined) return;
  const why = state === undefined ? '' : `: ${state.check.summary}`;
  throw new SvcError(
    'SVC_NEEDS_KUBERNETES',
    `serve.controller.high_availability is true, and no Kubernetes cluster can be used${why.replace(/\.$/, '')}.`,
    {
      hint: `A controller that survives its node runs in a cluster. Enable one (svc check ${place} says how), or remove high_availability from config.yaml.`,
    },
  );
}

/** The cluster and namespace for the controller, by what the configuration says. Throws SVC_NEEDS_KUBERNETES when it names none that there is. */
export function chooseSite(config: Config, wished: string | undefined, contexts: KubeContexts = kubeContexts()): ClusterSite {
  const context = wished ?? contextOf(config, contexts);
  const { namespace } = kubernetesContextConfig(config.kubernetes, context);
  return { context, namespace: namespace ?? contexts.cluster(context).namespace };
}

function contextOf({ serve, kubernetes }: Config, contexts: KubeContexts): string {
  const { resources } = serve.controller;
  const choices = resources?.choices ?? [];
  const named = choices.find(({ cloud, region }) => cloud === place && region !== undefined)?.region;
  if (named !== undefined) return named;
  const others = [...new Set(choices.flatMap(({ cloud }) => (cloud === undefined || cloud === place ? [] : [cloud])))];
  if (others.length > 0 && choices.every(({ cloud }) => cloud !== place && cloud !== undefined)) {
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
