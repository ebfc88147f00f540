import { balancerHostEndpoints, balancerPodLabels } from '../../domain/balancer-host.ts';
import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import { accessObjects } from './access-objects.ts';
import type { HighAvailabilityDesign, HighAvailabilitySecrets, OwnerReference } from './design.ts';
import { haNames } from './names.ts';
import { metadataOf, ownedBy } from './object-parts.ts';
import { anchorObject, secretObjects, settingsDigest } from './settings-objects.ts';
import { workloadObjects } from './workload-objects.ts';

/**
 * Every object of a controller that survives its node, in an order in which they can be applied; the first one owns the others, once `owner` says who
 * that is. Without secrets they are those that may be kept in a repository. Equal designs give equal objects.
 */
export function manifests(
  design: HighAvailabilityDesign,
  secrets: HighAvailabilitySecrets | undefined,
  owner: OwnerReference | undefined,
): readonly KubeDraft[] {
  const objects = [
    anchorObject(design),
    ...accessObjects(design),
    ...(secrets === undefined ? [] : secretObjects(design, secrets)),
    endpointsService(design),
    ...workloadObjects(design, secrets === undefined ? undefined : settingsDigest(design, secrets)),
  ];
  return objects.map((object) => ownedBy(object, owner));
}

/** What leads to the endpoints: to those balancers that say they serve. */
export function endpointsService(design: HighAvailabilityDesign): KubeDraft {
  const { first, last } = balancerHostEndpoints;
  const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadataOf(design, haNames.endpoints),
    spec: {
      type: design.endpointService,
      selector: { ...balancerPodLabels.role, [balancerPodLabels.serving]: 'true' },
      ports: numbers.map((port) => ({
        name: `endpoint-${port}`,
        protocol: 'TCP',
        port,
        targetPort: port,
        // An endpoint is called by its number everywhere.
        ...(design.endpointService === 'NodePort' && { nodePort: port }),
      })),
    },
  };
}
