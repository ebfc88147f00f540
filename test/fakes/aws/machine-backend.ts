/** Settings that turn an instance into a real machine of a test. */
export interface LaunchedInstance {
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  readonly instanceType: string;
  readonly spot: boolean;
  readonly imageId: string;
  /** Decoded; undefined when the launch has none. */
  readonly userData: string | undefined;
  /** The public key of its key pair, one line as in `authorized_keys`. */
  readonly keyPublic: string | undefined;
  readonly privateIp: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Root disk, GiB. */
  readonly diskGb: number;
  readonly instanceProfileArn: string | undefined;
}

/** Addresses of a machine. */
export interface MachineAddresses {
  readonly publicIp: string;
  readonly privateIp: string;
}

/** An interruption notice or rebalance recommendation for an instance. `at` in ms since the epoch. */
export interface InstanceNotice {
  readonly kind: 'interruption' | 'rebalance';
  readonly at: number;
}

/**
 * Turns instances into real machines. An instance is `pending` until its promise resolves, and terminates when it
 * rejects.
 */
export interface MachineBackend {
  launch(instance: LaunchedInstance): Promise<MachineAddresses>;
  stop(id: string): Promise<void>;
  start(id: string): Promise<MachineAddresses>;
  terminate(id: string): Promise<void>;
  notice?(id: string, notice: InstanceNotice): void;
}
