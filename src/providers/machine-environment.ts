/** Carries a machine's cookie in the environment of all its processes. */
export const cookieVariable = 'SVC_COOKIE';

/** What of a machine on a shared host its processes are told. */
export interface MachineShare {
  readonly cookie: string;
  /** GPUs given to this machine alone; null where there are none to give. */
  readonly gpus: readonly number[] | null;
  /** The port its program is to listen on, where it has no network of its own. */
  readonly ownPort: number | null;
}

/** Variables that every process of a machine on a shared host gets because of where it is. */
export function machineEnvironment({ cookie, gpus, ownPort }: MachineShare): Readonly<Record<string, string>> {
  return {
    [cookieVariable]: cookie,
    // Empty hides all of them: who asked for none gets none, as on any other machine.
    ...(gpus === null ? {} : { CUDA_VISIBLE_DEVICES: gpus.join(',') }),
    ...(ownPort === null ? {} : { SVC_REPLICA_PORT: String(ownPort) }),
  };
}
