/** Carries a machine's cookie in the environment of all its processes. */
export const cookieVariable = 'SVC_COOKIE';

interface MachineShare {
  readonly cookie: string;
  /** GPUs of this machine alone; null: there are none to allot. */
  readonly gpus: readonly number[] | null;
  /** The port its program must listen on, where the machine has no network of its own. */
  readonly ownPort: number | null;
}

/** For every process of a machine that shares its computer with others. */
export function machineEnvironment({ cookie, gpus, ownPort }: MachineShare): Readonly<Record<string, string>> {
  return {
    [cookieVariable]: cookie,
    // Empty hides all GPUs: a machine that requested none sees none.
    ...(gpus === null ? {} : { CUDA_VISIBLE_DEVICES: gpus.join(',') }),
    ...(ownPort === null ? {} : { SVC_REPLICA_PORT: String(ownPort) }),
  };
}
