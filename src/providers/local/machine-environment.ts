import type { MachineRecord } from './machine-record.ts';

/** Carries a machine's cookie in the environment of all its processes. */
export const cookieVariable = 'SVC_COOKIE';

/** Variables that every process of a machine gets because of where it is. */
export function machineEnvironment({ cookie, gpus, ownPort }: MachineRecord): Readonly<Record<string, string>> {
  return {
    [cookieVariable]: cookie,
    // Empty hides all of them: who asked for none gets none, as on any other machine.
    ...(gpus === null ? {} : { CUDA_VISIBLE_DEVICES: gpus.join(',') }),
    ...(ownPort === null ? {} : { SVC_REPLICA_PORT: String(ownPort) }),
  };
}
