import type { SshHost } from '../../domain/ssh-pool.ts';
import type { Remote } from '../../remote/remote.ts';
import { SvcError } from '../../shared/errors.ts';
import { machineEnvironment } from '../machine-environment.ts';
import type { MachineRecord } from './machine-record.ts';

/** How to work on a host: in a folder, with an environment, through an isolation, with a way in. */
export interface RemoteSettings {
  readonly pool: string;
  readonly host: SshHost;
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Where a port of the machine is found on the host: a port there, or a socket that asks for the port (`src/node/forwarder.mjs`). */
  readonly wayIn: (port: number) => { readonly hostPort: number } | { readonly socket: string };
}

/** A remote, and how to end what was opened for it here; the connection to the host stays for others. */
export interface WorkableRemote extends Remote {
  close?(): Promise<void>;
}

/** Opens a way to work on a host. Cheap; no call is made. */
export type OpenRemote = (settings: RemoteSettings) => WorkableRemote;

/** To the host itself. */
export function hostRemote(open: OpenRemote, pool: string, host: SshHost): WorkableRemote {
  return open({ pool, host, baseDir: '/', enter: [], environment: {}, wayIn: (hostPort) => ({ hostPort }) });
}

/** To one of its machines. */
export function machineRemote(open: OpenRemote, host: SshHost, record: MachineRecord): WorkableRemote {
  const { dir, isolation, socket, ownPort } = record;
  return open({
    pool: record.pool,
    host,
    baseDir: `${dir}/base`,
    enter: isolation === 'none' ? [] : ['sh', `${dir}/enter.sh`],
    environment: machineEnvironment(record),
    wayIn: (port) => (isolation === 'none' ? { hostPort: ownPort ?? port } : { socket }),
  });
}

/** For a machine that nobody knows where it is: whatever is tried says that it is gone. */
export function goneRemote(id: string): Remote {
  const gone = (): Promise<never> => Promise.reject(new SvcError('SVC_MACHINE_LOST', `There is no machine ${id} of the place ssh.`));
  return {
    baseDir: '/nonexistent',
    enter: [],
    environment: {},
    exec: gone,
    copyTo: gone,
    writeFile: gone,
    readFile: gone,
    watch: () => undefined,
    follow: () => ({ [Symbol.asyncIterator]: () => ({ next: gone }) }),
    localPath: () => undefined,
    address: gone,
    forwardSocket: gone,
  };
}
