/** The inputs for starting a proxy. */
export interface ProxyOptions {
  /** The proxy's own folder for configuration, logs and sockets. */
  readonly dir: string;
  /** Ports of the replicas, all on 127.0.0.1. */
  readonly replicaPorts: readonly number[];
  /** Whether the proxy is tuned to relay events at once instead of collecting bytes. */
  readonly isForStreams: boolean;
  /** The number of client connections that the proxy must be able to hold. */
  readonly maxConnections: number;
  /** Folder for the CPU profile that a Node.js contestant writes when it ends. */
  readonly profileDir: string | undefined;
}

/** A proxy that is ready to serve. */
export interface RunningProxy {
  readonly port: number;
  /** The process whose CPU time and memory are measured; undefined for direct traffic without a proxy. */
  readonly pid: number | undefined;
  readonly stop: () => Promise<void>;
}

/** A proxy, or no proxy, between client and replicas. */
export interface Contestant {
  readonly name: string;
  start(options: ProxyOptions): Promise<RunningProxy>;
}
