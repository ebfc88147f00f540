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
  /** Path of a private key, the only one that ssh then offers. */
  readonly identityFile?: string;
  /** As for `ssh -J`: `user@host:port`, separated by commas. */
  readonly proxyJump?: string;
  readonly userConfig: boolean;
  /** `pin-first`: only the first key that the machine shows is accepted. Else its keys, as `ssh-ed25519 AAAA…`. */
  readonly hostKeys: 'pin-first' | readonly string[];
}

/** Limit for opening a connection, up to the banner. */
const connectTimeoutS = 10;

/** ssh gives up a connection after `aliveCountMax` intervals without an answer, 12 to 16 s. */
const aliveIntervalS = 4;
const aliveCountMax = 3;

/** Options for every use of ssh: no prompts, and the user's configuration only with `userConfig`. */
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

/** Options for the check of the host key; `alias` is the machine's name in `knownHosts`. */
export function hostKeyOptions({ hostKeys }: SshTarget, knownHosts: string, alias: string): readonly string[] {
  return [
    ...settings(`UserKnownHostsFile=${quotedPath(knownHosts)}`, `HostKeyAlias=${alias}`),
    ...settings(`StrictHostKeyChecking=${hostKeys === 'pin-first' ? 'accept-new' : 'yes'}`),
  ];
}

/** Arguments for the jump hosts and, as the last one, the host. */
export function destination(target: SshTarget, knownHosts: string): readonly string[] {
  return [...jumpOptions(target, knownHosts), ...login(target), '--', target.host];
}

const neededVariables = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SSH_AUTH_SOCK'];

/** Providers find all processes of a removed machine by it, also connections of a controller that ran there. */
const markVariable = 'SVC_COOKIE';

/**
 * What ssh needs to find keys and programs. Never the user's locale, which the machine may lack. With the user's
 * configuration, the whole environment: programs that it starts may need more.
 */
export function sshEnvironment(userConfig: boolean): Readonly<Record<string, string | undefined>> {
  const all = userConfig ? wholeEnv() : Object.fromEntries([...neededVariables, markVariable].map((name) => [name, envVar(name)]));
  return Object.fromEntries(Object.entries(all).filter(([name]) => name !== 'LANG' && name !== 'LANGUAGE' && !name.startsWith('LC_')));
}

/** As `-J` by a ProxyCommand, because ssh's own `-J` passes on neither these options nor the identity. */
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
  // Doubled percent signs: ssh must expand only its two fields, `%h` and `%p`.
  const before = shellCommand(['ssh', ...options]).replaceAll('%', '%%');
  return settings(`ProxyCommand=${before} -W '[%h]:%p' ${shellCommand([...login(hop), '--', hop.host]).replaceAll('%', '%%')}`);
}

function login({ user, port }: Pick<SshTarget, 'user' | 'port'>): readonly string[] {
  return [...(user === undefined ? [] : ['-l', user]), ...(port === undefined ? [] : ['-p', String(port)])];
}

/** `user@host:port`, `[::1]:22` and shorter forms. */
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

/** Within a setting, blanks would split a path, and percent signs would start fields. */
function quotedPath(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}
