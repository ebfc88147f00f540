import { openKubeApi } from '../../kubernetes/contexts.ts';
import type { Clock } from '../../shared/clock.ts';
import { noFence } from '../../shared/fence.ts';
import type { Random } from '../../shared/random.ts';
import type { HighAvailabilityDeps } from './high-availability.ts';

/** Opens clusters as the user of this command, who has no rivals. */
export function clusterOpener(clock: Clock, random: Random): HighAvailabilityDeps['openApi'] {
  return ({ context, namespace }) => openKubeApi(context, { fence: noFence, clock, random, namespace });
}
