import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import type { HighAvailabilityDesign, OwnerReference } from './design.ts';
import { inContainer, ownedLabel, roleLabel } from './names.ts';

/** The programs that a pod can run. */
export const podRoles = ['controller', 'balancer', 'checker'] as const;
export type PodRole = (typeof podRoles)[number];

/** Labels that select the pods of one role. */
export function podSelector(role: PodRole): Readonly<Record<string, string>> {
  return { [roleLabel]: role === 'checker' ? 'health-checker' : role };
}

/** Metadata of an object: its namespace, and the user's labels and annotations. */
export function metadataOf(design: HighAvailabilityDesign, name: string): KubeDraft['metadata'] {
  return {
    name,
    namespace: design.namespace,
    labels: labelsOf(design),
    ...(Object.keys(design.annotations).length > 0 && { annotations: design.annotations }),
  };
}

/** Labels of all objects, and of pods. */
export function labelsOf({ labels, key }: HighAvailabilityDesign): Readonly<Record<string, string>> {
  return { ...labels, 'app.kubernetes.io/name': 'svc', [ownedLabel]: key };
}

/** Makes Kubernetes remove an object with the anchor. Without a namespace this is impossible: it is removed by name. */
export function ownedBy(object: KubeDraft, owner: OwnerReference | undefined): KubeDraft {
  const isAnchor = owner !== undefined && object.kind === owner.kind && object.metadata.name === owner.name;
  if (owner === undefined || isAnchor || object.metadata['namespace'] === undefined) return object;
  return { ...object, metadata: { ...object.metadata, ownerReferences: [owner] } };
}

/** For every pod: what the strictest Pod Security Standard requires. */
const podSecurity = {
  runAsNonRoot: true,
  runAsUser: inContainer.uid,
  runAsGroup: inContainer.uid,
  fsGroup: inContainer.uid,
  seccompProfile: { type: 'RuntimeDefault' },
} as const;

/** Required for every container. */
export const containerSecurity = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const;

/** A lost node's pods are evicted after this time, s. Kubernetes' default is five minutes. */
const lostNodeTolerationSeconds = 5;

/** Settings that all kinds of pods share. */
export function podBasics({ imagePullSecrets }: HighAvailabilityDesign, role: PodRole): Readonly<Record<string, unknown>> {
  return {
    securityContext: podSecurity,
    enableServiceLinks: false,
    ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
    tolerations: ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: lostNodeTolerationSeconds,
    })),
    // Preferences only: the pods must also run on a single node, and while a node is down.
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { labelSelector: { matchLabels: podSelector(role) }, topologyKey: 'kubernetes.io/hostname' } },
        ],
      },
    },
    topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels: podSelector(role) },
    })),
  };
}
