/** A pool of machines that the user owns and that are reached over SSH. */
export interface SshPool {
  /** As in `infra: ssh/NAME`. */
  readonly name: string;
  /** The file it was read from, to tell the user. */
  readonly file: string;
  /** At least one. */
  readonly hosts: readonly SshHost[];
}

/** One machine of a pool. What is absent is for the user's own `~/.ssh/config` to say. */
export interface SshHost {
  /** An address, a name, or an alias of `~/.ssh/config`; unique within its pool. */
  readonly host: string;
  readonly user: string | undefined;
  readonly port: number | undefined;
  /** Path of a private key. */
  readonly identityFile: string | undefined;
  /** `user@host:port` to go through, as for `ssh -J`. */
  readonly proxyJump: string | undefined;
  /** US dollars an hour that the owner reckons with; 0 when nothing is given. */
  readonly hourlyUsd: number;
}
