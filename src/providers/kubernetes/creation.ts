import type { KubernetesContextConfig } from '../../domain/config.ts';
import type { Clock } from '../../shared/clock.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import type { Cluster } from './cluster.ts';
import { chooseImage } from './image.ts';
import type { PodPlan } from './manifest.ts';
import type { MachineRef } from './names.ts';
import { nodeDemands } from './node-demands.ts';
import { forTask } from './pod-settings.ts';

/** What making a machine needs, or trying out whether it would be made. */
export interface Creation {
  readonly cluster: Cluster;
  readonly config: KubernetesContextConfig;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly ref: MachineRef;
  /** Process 1 of each container. */
  readonly command: readonly string[];
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** What all pods of a machine have in common. */
export type MachinePlan = Omit<PodPlan, 'name' | 'rank' | 'anchor'>;

/** What the pods of a machine are to be. Throws a `PlaceRefusal` when there is no image for the context. */
export async function planMachine({ cluster, config, offer, spec, ref, command, signal }: Creation): Promise<MachinePlan> {
  const image = chooseImage(spec.imageId, offer.region, config.image);
  if ('why' in image) throw new PlaceRefusal('unsupported', 'whole-region', `The cluster ${offer.region} ${image.why}.`);
  const needsNodes = offer.accelerator !== undefined || offer.spot || config.autoscaler === undefined;
  const survey = needsNodes ? await cluster.survey(signal) : undefined;
  return {
    config,
    offer,
    spec,
    demands: nodeDemands(offer, forTask(config, spec.placeConfig), survey !== undefined && 'nodes' in survey ? survey.nodes : undefined),
    namespace: ref.namespace,
    base: ref.base,
    image: image.image,
    command,
  };
}
