import { isAgainstSchema, kubeStatusOf } from '../../kubernetes/kube-errors.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Offer } from '../provider.ts';
import { ProviderRefusal } from '../provider-refusal.ts';

/**
 * Of an API server's quota plugin: the limit is reached; the pod lacks an amount that a quota limits; its priority
 * class needs a quota that names the class; or a new quota has not been counted yet.
 */
const quotaMessages = /exceeded quota|failed quota|insufficient quota to match|status unknown for quota/i;

/**
 * Returns a refusal (the caller tries another offer), a transient fault, or the error unchanged. Codes follow
 * Kubernetes' API conventions; texts are those of its admission plugins.
 */
export function creationError(error: unknown, offer: Offer): unknown {
  const status = kubeStatusOf(error);
  if (status === undefined) return error;
  const { code, message } = status;
  const refuse = (
    kind: ConstructorParameters<typeof ProviderRefusal>[0],
    scope: ConstructorParameters<typeof ProviderRefusal>[1],
  ): ProviderRefusal =>
    new ProviderRefusal(kind, scope, `The cluster ${offer.region} refuses a pod of ${offer.instanceType}: ${message}`, {
      hint: remedyInConfig(message) ?? remedies[kind]?.(offer.region),
      cause: error,
    });
  if (code === 403) {
    if (quotaMessages.test(message)) return refuse('quota', 'namespace');
    // Kubernetes creates this service account shortly after a new namespace, so a retry will succeed.
    if (message.includes('serviceaccount "default" not found'))
      return new SvcError('SVC_PLACE_FAILED', `The cluster ${offer.region} is still setting up the namespace: ${message}`, {
        cause: error,
      });
    // "cannot VERB resource" means that the user lacks a right. Otherwise a plugin or a webhook refused the pod.
    return / cannot \w+ resource /.test(message) ? refuse('permission', 'whole-region') : refuse('setup', 'region');
  }
  // Concurrent creates of pods update the same quota object, and one of them fails.
  if (code === 409 && message.includes('resourcequotas')) return refuse('throttled', 'whole-region');
  if (code === 429) return refuse('throttled', 'whole-region');
  // Webhooks may answer with any status. The API server names them in the message.
  if (/admission webhook .* denied/i.test(message)) return refuse('setup', 'region');
  if (isAgainstSchema(status)) return refuse('setup', 'region');
  if (code === 404) return refuse('setup', 'whole-region');
  if (code === 400 || code === 422) return refuse('setup', 'region');
  return error;
}

const remedies: Partial<Record<ConstructorParameters<typeof ProviderRefusal>[0], (context: string) => string>> = {
  permission: (context) =>
    `Make the role, and bind it as its first lines say: svc check kubernetes --role | kubectl --context ${context} apply -f -`,
  quota: () => 'Ask for less, have the quota of the namespace raised, or set another namespace.',
  setup: () => 'Correct what the cluster names: there, or in kubernetes.pod_config of the configuration or of the task.',
};

/** For a refusal that a known `pod_config` prevents. */
function remedyInConfig(message: string): string | undefined {
  if (/failed quota: .*must specify .*limits\.(?:cpu|memory)/.test(message))
    return (
      'A quota of the namespace requires limits for every container. Set in kubernetes.pod_config, with your amounts: ' +
      '{spec: {containers: [{resources: {limits: {cpu: 2, memory: 4Gi}}}]}}, or give the namespace a LimitRange with defaults.'
    );
  if (!message.includes('violates PodSecurity')) return undefined;
  return (
    'Set in kubernetes.pod_config: {spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000}, ' +
    'containers: [{securityContext: {capabilities: {drop: [ALL]}}}]}}. The image must work as that user.'
  );
}

/** Whether an API server denies the user a request. */
export function isDenied(error: unknown): boolean {
  return error instanceof SvcError && error.code === 'SVC_DENIED';
}
