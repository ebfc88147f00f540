import { isAgainstSchema, kubeStatusOf } from '../../kubernetes/kube-errors.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Offer } from '../provider.ts';
import { PlaceRefusal } from '../place-refusal.ts';

/**
 * What an API server's answer to a new pod means for the search: a refusal, where another offer should be tried, a fault that passes by itself, or the
 * error as it is. The codes are those of Kubernetes' API conventions (HTTP status and `reason`), the texts those of its admission plugins.
 */
export function creationError(error: unknown, offer: Offer): unknown {
  const status = kubeStatusOf(error);
  if (status === undefined) return error;
  const { code, message } = status;
  const refuse = (
    kind: ConstructorParameters<typeof PlaceRefusal>[0],
    scope: ConstructorParameters<typeof PlaceRefusal>[1],
  ): PlaceRefusal =>
    new PlaceRefusal(kind, scope, `The cluster ${offer.region} refuses a pod of ${offer.instanceType}: ${message}`, {
      hint: remedies[kind]?.(offer.region),
      cause: error,
    });
  if (code === 403) {
    if (/exceeded quota|failed quota/i.test(message)) return refuse('quota', 'region');
    // Of a namespace that was made a moment ago.
    if (message.includes('serviceaccount "default" not found'))
      return new SvcError('SVC_PLACE_FAILED', `The cluster ${offer.region} is still setting up the namespace: ${message}`, {
        cause: error,
      });
    // Who may not is told so by name; any other refusal is of somebody who looked at the pod: a limit or the security of the namespace, a webhook.
    return / cannot \w+ resource /.test(message) ? refuse('permission', 'whole-region') : refuse('setup', 'region');
  }
  if (code === 429) return refuse('throttled', 'whole-region');
  // Webhooks answer with any status they like, and the API server names them.
  if (/admission webhook .* denied/i.test(message)) return refuse('setup', 'region');
  if (isAgainstSchema(status)) return refuse('setup', 'region');
  if (code === 404) return refuse('setup', 'whole-region');
  if (code === 400 || code === 422) return refuse('setup', 'region');
  return error;
}

/** What to do about refusals, where that is the same for all of their kind. */
const remedies: Partial<Record<ConstructorParameters<typeof PlaceRefusal>[0], (context: string) => string>> = {
  permission: (context) =>
    `Make the role, and bind it as its first lines say: svc check kubernetes --role | kubectl --context ${context} apply -f -`,
  quota: () => 'Ask for less, have the quota of the namespace raised, or set another namespace.',
  setup: () => 'Mend what the cluster names: there, or in kubernetes.pod_config of the configuration or of the task.',
};

/** Whether an API server says that the user may not do it. */
export function isDenied(error: unknown): boolean {
  return error instanceof SvcError && error.code === 'SVC_DENIED';
}
