import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import type { HighAvailabilityDesign, OwnerReference } from './design.ts';
import { inContainer, ownedLabel, roleLabel } from './names.ts';

/** Which of the two programs a pod runs. */
export type PodRole = 'controller' | 'balancer';

/** Labels by which the pods of one role are selected. */
export function podSelector(role: PodRole): Readonly<Record<string, string>> {
  return { [roleLabel]: role };
}

/** Metadata of an object: where it is, whose it is, and what the user puts on every object. */
export function metadataOf(design: HighAvailabilityDesign, name: string): KubeDraft['metadata'] {
  return {
    name,
    namespace: design.namespace,
    labels: labelsOf(design),
    ...(Object.keys(design.annotations).length > 0 && { annotations: design.annotations }),
  };
}

/** What all objects have, and pods as well. */
export function labelsOf({ labels, key }: HighAvailabilityDesign): Readonly<Record<string, string>> {
  return { ...labels, 'app.kubernetes.io/name': 'svc', [ownedLabel]: key };
}

/** Makes an object go with the anchor. What belongs to no namespace cannot: it is removed by name. */
export function ownedBy(object: KubeDraft, owner: OwnerReference | undefined): KubeDraft {
  const isAnchor = owner !== undefined && object.kind === owner.kind && object.metadata.name === owner.name;
  if (owner === undefined || isAnchor || object.metadata['namespace'] === undefined) return object;
  return { ...object, metadata: { ...object.metadata, ownerReferences: [owner] } };
}

/** Of every pod: what the strictest of the Pod Security Standards asks for. */
const podSecurity = {
  runAsNonRoot: true,
  runAsUser: inContainer.uid,
  runAsGroup: inContainer.uid,
  fsGroup: inContainer.uid,
  seccompProfile: { type: 'RuntimeDefault' },
} as const;

/** Of every container. */
export const containerSecurity = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const;

/** A pod leaves a node that is lost after so long, s, rather than after Kubernetes' five minutes. */
const leaveLostNodeSeconds = 5;

/** What both kinds of pods have. */
export function podBasics({ imagePullSecrets }: HighAvailabilityDesign, role: PodRole): Readonly<Record<string, unknown>> {
  return {
    securityContext: podSecurity,
    enableServiceLinks: false,
    ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
    tolerations: ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: leaveLostNodeSeconds,
    })),
    // Preferences: on a cluster of one node, and while a node is away, they are to run all the same.
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
