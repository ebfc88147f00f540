import type { Config } from '../../domain/config.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ControllerRecord } from '../controller-record.ts';

/** A remote controller is on another machine or in a Kubernetes cluster. */
export type ExistingController =
  | { readonly kind: 'local' }
  | { readonly kind: 'remote'; readonly record: ControllerRecord }
  | { readonly kind: 'none' };

/**
 * Throws SVC_CONTROLLER_KIND when only one of the existing and the configured controller survives its machine. A new
 * one does not get the old one's state, so the old one must be removed first.
 */
export function refuseOtherKind(existing: ExistingController, { serve }: Pick<Config, 'serve'>): void {
  const isHighAvailability = serve.controller.highAvailability;
  if (existing.kind === 'none') return;
  const site = existing.kind === 'remote' ? existing.record.cluster : undefined;
  if (isHighAvailability === (site !== undefined)) return;
  if (site !== undefined) {
    throw new SvcError(
      'SVC_CONTROLLER_KIND',
      `The controller lives in the cluster ${site.context} (namespace ${site.namespace}), and high_availability is not true in config.yaml any more.`,
      {
        hint: `Set it to true again; or take its services down (svc serve down --all; svc down --all) and then the controller: svc controller down`,
      },
    );
  }
  const isLocal = existing.kind === 'local';
  throw new SvcError(
    'SVC_CONTROLLER_KIND',
    `serve.controller.high_availability is true, and there is a controller ${isLocal ? 'on this machine' : 'on another machine'} already, which does not survive its machine.`,
    {
      hint: `It cannot be changed into one that does. Take its services down (svc serve down --all; svc down --all), then the controller: svc controller ${isLocal ? 'stop' : 'down'}; or remove high_availability from config.yaml.`,
    },
  );
}
