import { readControllerRecord } from '../launcher/controller-record.ts';
import { refuseOtherKind } from '../launcher/high-availability/kind.ts';
import type { HomePaths } from '../shared/paths.ts';
import { loadConfig } from '../spec/load-config.ts';

/** Whether the controller is in a cluster, or would be. */
export async function isForCluster(paths: HomePaths): Promise<boolean> {
  const record = readControllerRecord(paths.controllerRecord);
  if (record !== undefined) return record.cluster !== undefined;
  return (await loadConfig(paths.config)).serve.controller.highAvailability;
}

/** Throws SVC_CONTROLLER_KIND when there is a controller that is not as the configuration asks for. `isHere`: whether there is one on this machine. */
export async function checkControllerKind(paths: HomePaths, isHere: () => Promise<boolean>): Promise<void> {
  const config = await loadConfig(paths.config);
  const record = readControllerRecord(paths.controllerRecord);
  if (record !== undefined) refuseOtherKind({ kind: 'elsewhere', record }, config);
  else if (config.serve.controller.highAvailability && (await isHere())) refuseOtherKind({ kind: 'here' }, config);
}
