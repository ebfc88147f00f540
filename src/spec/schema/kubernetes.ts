import { z } from 'zod';
import { defaultConfig, kubernetesReaches } from '../../domain/config.ts';
import { anyMap, field, reading, section, someText, wholeNumber, word, type Reading } from './kit.ts';

const texts = z.record(z.string(), z.string());

const dnsLabel = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const dnsName = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const namespaceName = z.string().regex(dnsLabel, "is not the name of a namespace: lower case letters, digits and '-', up to 63");

/** Names of Kubernetes objects such as secrets and volume claims. */
export const objectName = z.string().max(253).regex(dnsName, "is not a name of Kubernetes: lower case letters, digits, '-' and '.'");

/** SkyPilot reads these words as keywords, not as the name of a service account. */
const identityWords = new Set(['LOCAL_CREDENTIALS', 'SERVICE_ACCOUNT', 'NO_UPLOAD']);

const serviceAccount = reading(z.string(), (text): Reading<string | undefined> => {
  if (identityWords.has(text)) return { ok: undefined };
  return dnsName.test(text) ? { ok: text } : { problem: "is not the name of a service account: lower case letters, digits, '-' and '.'" };
});

const toleration = section({
  key: field(z.string(), 'Of the taint; without it all taints.', { words: 'all' }),
  operator: field(z.enum(['Equal', 'Exists']), 'Whether the value counts.', 'Equal'),
  value: field(z.string(), 'Of the taint.'),
  effect: field(z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']), 'Of the taint; without it all effects.', { words: 'all' }),
  tolerationSeconds: field(wholeNumber, 'For how long.', { words: 'for ever' }),
});

/** Longer than any Kubernetes cluster takes to grow, s. SkyPilot's -1 means no limit. */
const longestTimeout = 86_400;

const provisionTimeout = reading(wholeNumber.min(-1).max(longestTimeout), (given): Reading<number> => ({
  ok: given === -1 ? longestTimeout : given,
}));

const autoscaler = z.union([
  reading(z.boolean(), (given): Reading<string | undefined> => ({ ok: given ? 'generic' : undefined })),
  reading(someText, (text): Reading<string | undefined> => ({ ok: text.toLowerCase() })),
]);

const dollars = z.number().min(0).max(100_000);

const price = section({
  cpu: field(dollars, 'For a CPU.', 0),
  memory_gb: field(dollars, 'For a GB of memory.', 0),
  accelerators: field(z.record(someText, dollars), 'For one of each kind, by name.'),
});

const customMetadata = section({
  labels: field(texts, 'Labels of every object.'),
  annotations: field(texts, 'Annotations of every object.'),
});

const highAvailability = section({
  storage_class_name: field(objectName, "Class of the controller's volume.", { words: "the cluster's default" }),
});

const ofContext = {
  namespace: field(namespaceName, 'Where pods go.', { words: 'that of the context' }),
  image: field(someText, 'Image of replicas whose task names none.', defaultConfig.kubernetes.image),
  image_pull_secrets: field(z.array(objectName), 'Names of secrets for fetching images.'),
  remote_identity: field(serviceAccount, 'Service account of the pods.', { words: 'none: pods get no key to the cluster' }),
  node_selector: field(texts, 'Labels of the nodes that may be used.'),
  tolerations: field(z.array(toleration), 'Taints of nodes that are no hindrance, as Kubernetes writes them.'),
  pod_config: field(anyMap, 'A partial Pod that is merged into every pod; checked before it is used.'),
  custom_metadata: field(customMetadata, 'Put on every object.'),
  autoscaler: field(
    autoscaler,
    '`gke`, `karpenter`, `coreweave`, `generic` or another name, or `true`: nodes are added when pods wait, so what they hold now is no limit.',
    false,
  ),
  provision_timeout: field(provisionTimeout, 'How long a pod may wait for room, in seconds; -1 is a day.', {
    words: '10; 600 with an autoscaler',
  }),
  reach: field(word(kubernetesReaches), 'How requests reach pods; `auto` takes the first way that works.', defaultConfig.kubernetes.reach),
  price: field(price, 'What an hour of a pod costs, in US dollars, when locations are compared.', { words: 'nothing' }),
  high_availability: field(highAvailability, 'The controller with `high_availability`.'),
};

const contextSection = section(ofContext);

/** Kubernetes contexts as providers of replicas. */
export const kubernetesSection = section({
  allowed_contexts: field(z.union([z.literal('all'), z.array(someText).min(1)]), 'The only contexts of the kubeconfig to use, or `all`.', {
    words: 'the current one, and others when a task names them',
  }),
  context_configs: field(z.record(z.string(), contextSection), 'What differs in some contexts, by their names: the fields below.'),
  ...ofContext,
});

export type KubernetesFields = z.output<typeof kubernetesSection>;
export type KubernetesContextFields = z.output<typeof contextSection>;

/** The part of a task's `config` for Kubernetes; other parts are SkyPilot's own. */
export const taskConfigSection = z.looseObject({
  kubernetes: field(
    section({
      pod_config: field(anyMap, 'A partial Pod that is merged into the pods of this task, after that of the configuration.'),
      provision_timeout: field(provisionTimeout, 'How long its pods may wait for room, in seconds; -1 is a day.', {
        words: 'as configured',
      }),
    }),
    'Its pods on Kubernetes.',
  ),
});
