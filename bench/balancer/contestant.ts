/** What a proxy is started with. */
export interface ProxyOptions {
  /** A folder of its own for configuration, logs and sockets. */
  readonly dir: string;
  /** Replicas, all on 127.0.0.1. */
  readonly replicaPorts: readonly number[];
  /** Whether it is tuned to pass events on at once rather than to collect bytes. */
  readonly isForStreams: boolean;
  /** Connections of clients that it must be able to hold. */
  readonly maxConnections: number;
  /** Where a contestant on Node.js leaves a CPU profile when it ends. */
  readonly profileDir: string | undefined;
}

/** A proxy that serves. */
export interface RunningProxy {
  readonly port: number;
  /** The process that does the work, whose CPU time and memory are counted; undefined when there is none between client and replica. */
  readonly pid: number | undefined;
  readonly stop: () => Promise<void>;
}

/** Something that can stand between client and replicas. */
export interface Contestant {
  readonly name: string;
  start(options: ProxyOptions): Promise<RunningProxy>;
}
