import { join } from 'node:path';
import type { PodRef } from '../../kubernetes/kube-api.ts';
import { shortFingerprint } from '../../shared/hex.ts';
import { isObject } from '../../shared/json.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { TunnelRecords } from '../tunnel-records.ts';

/** Files of a Kubernetes cluster's forwarder. Short names: Linux allows 107 bytes for a socket's path. */
export interface ForwarderFiles {
  /** Mode 0700; shared by all Kubernetes clusters. */
  readonly socketDir: string;
  readonly control: string;
  /** The forwarder's process identity. */
  readonly identity: string;
  /** One record per pod that has tunnels. */
  readonly records: TunnelRecords<{ readonly pod: PodRef }>;
  readonly log: string;
}

/** The paths for one context. Pure. */
export function forwarderFiles(paths: HomePaths, context: string): ForwarderFiles {
  const name = shortFingerprint(context);
  const socketDir = join(paths.runtimeDir, 'k');
  const dir = join(paths.home, 'kubernetes', name);
  return {
    socketDir,
    control: join(socketDir, `c${name}`),
    identity: join(dir, 'forwarder.json'),
    records: new TunnelRecords({
      dir: join(dir, 'ways'),
      socketDir,
      readRoute: ({ pod }) => (isPodRef(pod) ? { pod } : undefined),
    }),
    log: join(dir, 'forwarder.log'),
  };
}

function isPodRef(value: unknown): value is PodRef {
  return isObject(value) && typeof value['namespace'] === 'string' && typeof value['name'] === 'string';
}
