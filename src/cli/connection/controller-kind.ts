import { readControllerRecord } from '../../launcher/controller-record.ts';
import { refuseOtherKind } from '../../launcher/high-availability/kind.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { loadConfig } from '../../spec/load-config.ts';

/** Whether the controller is in a Kubernetes cluster, or would be. */
export async function isInKubernetes(paths: HomePaths): Promise<boolean> {
  const record = readControllerRecord(paths.controllerRecord);
  if (record !== undefined) return record.cluster !== undefined;
  return (await loadConfig(paths.config)).serve.controller.highAvailability;
}

/** Throws SVC_CONTROLLER_KIND if the existing controller is not of the configured kind. `isLocal`: one is local. */
export async function checkControllerKind(paths: HomePaths, isLocal: () => Promise<boolean>): Promise<void> {
  const config = await loadConfig(paths.config);
  const record = readControllerRecord(paths.controllerRecord);
  if (record !== undefined) refuseOtherKind({ kind: 'remote', record }, config);
  else if (config.serve.controller.highAvailability && (await isLocal())) refuseOtherKind({ kind: 'local' }, config);
}
