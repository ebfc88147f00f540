/** For a machine's cookie, in the environment of all its processes. */
export const cookieVariable = 'SVC_COOKIE';

interface MachineShare {
  readonly cookie: string;
  /** GPUs of this machine alone; null: there are none to allot. */
  readonly gpus: readonly number[] | null;
  /** For its program, where the machine has no network of its own. */
  readonly ownPort: number | null;
}

/** For every process of a machine that shares its computer. */
export function machineEnvironment({ cookie, gpus, ownPort }: MachineShare): Readonly<Record<string, string>> {
  return {
    [cookieVariable]: cookie,
    // Empty hides all GPUs from a machine that requested none.
    ...(gpus === null ? {} : { CUDA_VISIBLE_DEVICES: gpus.join(',') }),
    ...(ownPort === null ? {} : { SVC_REPLICA_PORT: String(ownPort) }),
  };
}
