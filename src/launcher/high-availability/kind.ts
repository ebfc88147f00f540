import type { Config } from '../../domain/config.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ControllerRecord } from '../controller-record.ts';

/** The controller that there is: here, on another machine, or in a cluster. */
export type ExistingController =
  | { readonly kind: 'here' }
  | { readonly kind: 'elsewhere'; readonly record: ControllerRecord }
  | { readonly kind: 'none' };

/**
 * Throws SVC_CONTROLLER_KIND when the configuration asks for a controller that survives its machine and there is one that does not, or the other way
 * round: what one knows is not given to the other, so one of them has to go first.
 */
export function refuseOtherKind(existing: ExistingController, { serve }: Pick<Config, 'serve'>): void {
  const wishes = serve.controller.highAvailability;
  if (existing.kind === 'none') return;
  const cluster = existing.kind === 'elsewhere' ? existing.record.cluster : undefined;
  if (wishes === (cluster !== undefined)) return;
  if (cluster !== undefined) {
    throw new SvcError(
      'SVC_CONTROLLER_KIND',
      `The controller lives in the cluster ${cluster.context} (namespace ${cluster.namespace}), and high_availability is not true in config.yaml any more.`,
      {
        hint: `Set it to true again; or take its services down (svc serve down --all; svc down --all) and then the controller: svc controller down`,
      },
    );
  }
  const isHere = existing.kind === 'here';
  throw new SvcError(
    'SVC_CONTROLLER_KIND',
    `serve.controller.high_availability is true, and there is a controller ${isHere ? 'on this machine' : 'on another machine'} already, which does not survive its machine.`,
    {
      hint: `It cannot be changed into one that does. Take its services down (svc serve down --all; svc down --all), then the controller: svc controller ${isHere ? 'stop' : 'down'}; or remove high_availability from config.yaml.`,
    },
  );
}
