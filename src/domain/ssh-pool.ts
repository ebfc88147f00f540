/** A pool of the user's own SSH hosts. */
export interface SshPool {
  /** Name as in `infra: ssh/NAME`. */
  readonly name: string;
  /** The file that defines the pool, for messages. */
  readonly file: string;
  /** At least one. */
  readonly hosts: readonly SshHost[];
}

/** One SSH host of a pool. Absent fields come from the user's own `~/.ssh/config`. */
export interface SshHost {
  /** An address, a name, or an alias of `~/.ssh/config`; unique within its pool. */
  readonly host: string;
  readonly user: string | undefined;
  readonly port: number | undefined;
  /** Path of a private key. */
  readonly identityFile: string | undefined;
  /** Jump host as `user@host:port`, as for `ssh -J`. */
  readonly proxyJump: string | undefined;
  /** Hourly cost that the owner assigns, US dollars; 0 when none is given. */
  readonly hourlyUsd: number;
}
