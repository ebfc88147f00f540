import type { SshHost } from '../../domain/config.ts';
import type { Remote } from '../../remote/remote.ts';
import { SvcError } from '../../shared/errors.ts';
import { machineEnvironment } from '../machine-environment.ts';
import type { MachineRecord } from './machine-record.ts';
import { SshRemote, type SshTarget } from '../../remote/ssh/index.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';

interface RemoteSettings {
  readonly pool: string;
  readonly host: SshHost;
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly limitsDir?: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
  /** A port on the SSH host, or a socket where the client names the port (`src/node/forwarder.mjs`). */
  readonly ingress: (port: number) => { readonly hostPort: number } | { readonly socket: string };
}

/** `close` closes what it opened; the connection to the SSH host stays for others. */
export interface WorkableRemote extends Remote {
  close?(): Promise<void>;
}

/** Opens a remote; makes no call. */
export type OpenRemote = (settings: RemoteSettings) => WorkableRemote;

/** A remote to the SSH host itself. */
export function hostRemote(open: OpenRemote, pool: string, host: SshHost): WorkableRemote {
  return open({ pool, host, baseDir: '/', enter: [], environment: {}, ingress: (hostPort) => ({ hostPort }) });
}

/** A remote to one of its machines. */
export function machineRemote(open: OpenRemote, host: SshHost, record: MachineRecord): WorkableRemote {
  const { dir, isolation, socket, ownPort } = record;
  return open({
    pool: record.pool,
    host,
    baseDir: `${dir}/base`,
    enter: isolation === 'none' ? [] : ['sh', `${dir}/enter.sh`],
    limitsDir: record.limits === undefined ? undefined : dir,
    environment: machineEnvironment(record),
    ingress: (port) => (isolation === 'none' ? { hostPort: ownPort ?? port } : { socket }),
  });
}

/** For an unknown machine: every call reports that it is gone. */
export function goneRemote(id: string): Remote {
  const gone = (): Promise<never> => Promise.reject(new SvcError('SVC_MACHINE_LOST', `The provider ssh has no machine ${id}.`));
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

/** Opens remotes over SSH. */
export function openSshRemotes(paths: HomePaths, clock: Clock): OpenRemote {
  return ({ pool, host, ingress, ...rest }) => {
    const target = sshTarget(pool, host);
    return new SshRemote({ target: () => Promise.resolve(target), ...rest, address: { ingress }, paths, clock });
  };
}

/** `~/.ssh/config` supplies the settings that the pools file omits. */
function sshTarget(pool: string, { host, port, user, identityFile, proxyJump }: SshHost): SshTarget {
  return {
    name: `${host} of the pool ${pool}`,
    host,
    ...(port === undefined ? {} : { port }),
    ...(user === undefined ? {} : { user }),
    ...(identityFile === undefined ? {} : { identityFile }),
    ...(proxyJump === undefined ? {} : { proxyJump }),
    userConfig: true,
    hostKeys: 'pin-first',
  };
}
