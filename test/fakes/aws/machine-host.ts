/** What an instance needs to become a real machine of a test. */
export interface LaunchedInstance {
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  readonly instanceType: string;
  readonly spot: boolean;
  readonly imageId: string;
  /** Decoded; undefined when none was given. */
  readonly userData: string | undefined;
  /** The public key of its key pair, one line as in `authorized_keys`. */
  readonly keyPublic: string | undefined;
  readonly privateIp: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Root disk, GiB. */
  readonly diskGb: number;
  readonly instanceProfileArn: string | undefined;
}

/** Where a machine is reached. */
export interface MachineAddresses {
  readonly publicIp: string;
  readonly privateIp: string;
}

/** What AWS says of an instance that it will take, or may have to. `at` in ms since the epoch. */
export interface InstanceNotice {
  readonly kind: 'interruption' | 'rebalance';
  readonly at: number;
}

/** Turns instances into machines that can be worked on. An instance is `pending` until its promise is kept, and lost when it is broken. */
export interface MachineHost {
  launch(instance: LaunchedInstance): Promise<MachineAddresses>;
  stop(id: string): Promise<void>;
  start(id: string): Promise<MachineAddresses>;
  terminate(id: string): Promise<void>;
  notice?(id: string, notice: InstanceNotice): void;
}
