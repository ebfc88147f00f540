import { join } from 'node:path';
import type { Provider } from '../providers/provider.ts';
import type { FileDelivery } from '../provision/files/delivery.ts';
import { Deployment } from '../provision/files/deployment.ts';
import type { Clock } from '../shared/clock.ts';

/** Whose buckets are meant. */
export interface DeploymentSubject {
  /** Of a service or a cluster. */
  readonly name: string;
  readonly key: string;
  readonly clock: Clock;
}

/** The published files of a service. `dir` is the folder that holds everything of it. */
export function serviceDeployment(dir: string, { name, key, clock }: DeploymentSubject): Deployment {
  return new Deployment({ key, tags: { 'svc-service': name, 'svc-service-key': key }, record: join(dir, 'buckets.json'), clock });
}

/** The published files of a cluster. */
export function clusterDeployment(dir: string, { name, key, clock }: DeploymentSubject): Deployment {
  return new Deployment({ key, tags: { 'svc-cluster': name }, record: join(dir, 'buckets.json'), clock });
}

/** How files get to machines of a place in a region. */
export async function deliveryTo(deployment: Deployment, provider: Provider, region: string | undefined): Promise<FileDelivery> {
  return deployment.delivery(region === undefined ? undefined : await provider.bucketPlace?.(region));
}
