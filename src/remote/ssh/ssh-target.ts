import { envVar, wholeEnv } from '../../shared/env.ts';
import { shellCommand } from '../shell-quote.ts';

/** Address and login of a machine. */
export interface SshTarget {
  /** For messages, such as `gpu-1 of the pool lab`. Another machine at the same address has another name. */
  readonly name: string;
  /** An address, a name, or with `userConfig` an alias of `~/.ssh/config`. */
  readonly host: string;
  readonly port?: number;
  readonly user?: string;
  /** Path of a private key; ssh then offers only this one. */
  readonly identityFile?: string;
  /** Jump hosts as `user@host:port`, separated by commas, as for `ssh -J`. */
  readonly proxyJump?: string;
  /** Whether the user's own `~/.ssh/config` applies. */
  readonly userConfig: boolean;
  /**
   * `pin-first`: accept the first key that the machine shows, and only that key afterwards. Else its public keys, as
   * `ssh-ed25519 AAAA…`.
   */
  readonly hostKeys: 'pin-first' | readonly string[];
}

/** Seconds to open a connection, up to and including the banner. */
const connectTimeoutS = 10;

/** Keepalive: after that many unanswered intervals of that many seconds the connection is given up, 12 to 16 s. */
const aliveIntervalS = 4;
const aliveCountMax = 3;

/** Options for every use of ssh: it never prompts, and the user's configuration applies only with `userConfig`. */
export function baseOptions({ userConfig, identityFile }: SshTarget): readonly string[] {
  return [
    ...(userConfig ? [] : ['-F', 'none']),
    ...settings('BatchMode=yes', 'LogLevel=ERROR', `ConnectTimeout=${connectTimeoutS}`),
    ...settings(`ServerAliveInterval=${aliveIntervalS}`, `ServerAliveCountMax=${aliveCountMax}`),
    ...settings('ForwardAgent=no', 'ForwardX11=no', 'ClearAllForwardings=yes', 'RemoteCommand=none', 'EscapeChar=none'),
    ...settings('CheckHostIP=no', 'UpdateHostKeys=no', 'HashKnownHosts=no', 'GlobalKnownHostsFile=/dev/null'),
    ...(identityFile === undefined ? [] : ['-i', identityFile, ...settings('IdentitiesOnly=yes')]),
  ];
}

/** How to check the machine's host key; `alias` is its name in `knownHosts`. */
export function hostKeyOptions({ hostKeys }: SshTarget, knownHosts: string, alias: string): readonly string[] {
  return [
    ...settings(`UserKnownHostsFile=${quotedPath(knownHosts)}`, `HostKeyAlias=${alias}`),
    ...settings(`StrictHostKeyChecking=${hostKeys === 'pin-first' ? 'accept-new' : 'yes'}`),
  ];
}

/** The host to connect to and the jump hosts before it. The last argument is the host. */
export function destination(target: SshTarget, knownHosts: string): readonly string[] {
  return [...jumpOptions(target, knownHosts), ...login(target), '--', target.host];
}

const neededVariables = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SSH_AUTH_SOCK'];

/**
 * A provider finds all processes of a machine that it removes by this variable, including the connections of a
 * controller that ran there.
 */
const markVariable = 'SVC_COOKIE';

/**
 * The environment of ssh: enough to find keys and programs. Never the user's locale, which the machine may lack. With
 * the user's own configuration, the whole environment: that configuration may start programs that need more.
 */
export function sshEnvironment(userConfig: boolean): Readonly<Record<string, string | undefined>> {
  const all = userConfig ? wholeEnv() : Object.fromEntries([...neededVariables, markVariable].map((name) => [name, envVar(name)]));
  return Object.fromEntries(Object.entries(all).filter(([name]) => name !== 'LANG' && name !== 'LANGUAGE' && !name.startsWith('LC_')));
}

/** ssh's own `-J` would pass on neither these options nor the identity. So this builds the same as a ProxyCommand. */
function jumpOptions(target: SshTarget, knownHosts: string): readonly string[] {
  const { proxyJump } = target;
  if (proxyJump === undefined) return [];
  const comma = proxyJump.lastIndexOf(',');
  const last = parseJump(proxyJump.slice(comma + 1));
  const { name, userConfig, hostKeys, identityFile } = target;
  const hop: SshTarget = {
    name,
    userConfig,
    hostKeys,
    ...last,
    ...(identityFile === undefined ? {} : { identityFile }),
    ...(comma < 0 ? {} : { proxyJump: proxyJump.slice(0, comma) }),
  };
  const alias = `jump-${last.host}-${last.port ?? 22}`;
  const options = [
    ...baseOptions(target),
    ...hostKeyOptions({ ...target, hostKeys: 'pin-first' }, knownHosts, alias),
    ...jumpOptions(hop, knownHosts),
  ];
  // Doubled percent signs keep ssh from expanding anything but its two own fields, `%h` and `%p`.
  const before = shellCommand(['ssh', ...options]).replaceAll('%', '%%');
  return settings(`ProxyCommand=${before} -W '[%h]:%p' ${shellCommand([...login(hop), '--', hop.host]).replaceAll('%', '%%')}`);
}

function login({ user, port }: Pick<SshTarget, 'user' | 'port'>): readonly string[] {
  return [...(user === undefined ? [] : ['-l', user]), ...(port === undefined ? [] : ['-p', String(port)])];
}

/** Parses `user@host:port`, `[::1]:22` and shorter forms. */
function parseJump(text: string): Pick<SshTarget, 'host' | 'user' | 'port'> {
  const { user, bracketed, plain, port } =
    /^(?:(?<user>.*)@)?(?:\[(?<bracketed>[^\]]*)\]|(?<plain>[^:]*))(?::(?<port>\d+))?$/.exec(text.trim())?.groups ?? {};
  return {
    host: bracketed ?? plain ?? text.trim(),
    ...(user === undefined ? {} : { user }),
    ...(port === undefined ? {} : { port: Number(port) }),
  };
}

/** Settings in command line form. */
export function settings(...texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => ['-o', text]);
}

/** Quotes a path within an ssh setting: blanks would split it, and percent signs would start fields. */
function quotedPath(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}
