import type { KubernetesContextConfig } from '../../domain/config.ts';
import type { Clock } from '../../shared/clock.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import type { KubernetesCluster } from './kubernetes-cluster.ts';
import { chooseImage } from './image.ts';
import type { PodPlan } from './manifest.ts';
import type { MachineRef } from './names.ts';
import { nodeDemands } from './nodes/node-demands.ts';
import { forTask } from './pod-settings.ts';

/** Input for creating a machine, or for its dry run. */
export interface Creation {
  readonly cluster: KubernetesCluster;
  readonly config: KubernetesContextConfig;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly ref: MachineRef;
  /** Process 1 of each container. */
  readonly command: readonly string[];
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** The part of the plan that all pods of a machine share. */
export type MachinePlan = Omit<PodPlan, 'name' | 'rank' | 'anchor'>;

/** Plans the pods of a machine. Throws a `ProviderRefusal` when there is no image for the context. */
export async function planMachine({ cluster, config, offer, spec, ref, command, signal }: Creation): Promise<MachinePlan> {
  const image = chooseImage(spec.imageId, offer.region, config.image);
  if ('why' in image) throw new ProviderRefusal('unsupported', 'whole-region', `The cluster ${offer.region} ${image.why}.`);
  const needsNodes = offer.accelerator !== undefined || offer.spot || config.autoscaler === undefined;
  const survey = needsNodes ? await cluster.survey(signal) : undefined;
  return {
    config,
    offer,
    spec,
    demands: nodeDemands(offer, forTask(config, spec.providerConfig), survey !== undefined && 'nodes' in survey ? survey.nodes : undefined),
    namespace: ref.namespace,
    base: ref.base,
    image: image.image,
    command,
  };
}
