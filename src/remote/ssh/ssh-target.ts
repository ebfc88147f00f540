import { envVar, wholeEnv } from '../../shared/env.ts';
import { shellCommand } from '../shell-quote.ts';

/** Where a machine is and who may log in there. */
export interface SshTarget {
  /** For messages, such as `gpu-1 of the pool lab`. A machine that is another one at the same address has another name. */
  readonly name: string;
  /** An address, a name, or with `userConfig` an alias of `~/.ssh/config`. */
  readonly host: string;
  readonly port?: number;
  readonly user?: string;
  /** Path of a private key; only this one is offered then. */
  readonly identityFile?: string;
  /** `user@host:port` to go through, several with commas between, as for `ssh -J`. */
  readonly proxyJump?: string;
  /** Whether the user's own `~/.ssh/config` counts. */
  readonly userConfig: boolean;
  /** `pin-first`: the first key shown is the machine's from then on. Else its public keys, as `ssh-ed25519 AAAA…`. */
  readonly hostKeys: 'pin-first' | readonly string[];
}

/** Seconds for a connection to be made, up to and including the banner. */
const connectTimeoutS = 10;

/** A machine that is silent for so many times so many seconds is given up: 12 to 16 s. */
const aliveIntervalS = 4;
const aliveCountMax = 3;

/** Options that hold for every use of ssh: nothing is asked, nothing of the user's taste plays a part unless it was wanted. */
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

/** How the machine's host key is checked; `alias` names it in `knownHosts`. */
export function hostKeyOptions({ hostKeys }: SshTarget, knownHosts: string, alias: string): readonly string[] {
  return [
    ...settings(`UserKnownHostsFile=${quotedPath(knownHosts)}`, `HostKeyAlias=${alias}`),
    ...settings(`StrictHostKeyChecking=${hostKeys === 'pin-first' ? 'accept-new' : 'yes'}`),
  ];
}

/** Where to connect to, by which way. The last argument is the host. */
export function destination(target: SshTarget, knownHosts: string): readonly string[] {
  return [...way(target, knownHosts), ...login(target), '--', target.host];
}

const neededVariables = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SSH_AUTH_SOCK'];

/** By it a place finds all processes of a machine that it removes: also the connections of a controller that was there. */
const markVariable = 'SVC_COOKIE';

/**
 * What ssh sees of our environment: enough to find keys and programs. Never the user's language, which a machine may not have. The user's
 * own configuration may start programs that need more.
 */
export function sshEnvironment(userConfig: boolean): Readonly<Record<string, string | undefined>> {
  const all = userConfig ? wholeEnv() : Object.fromEntries([...neededVariables, markVariable].map((name) => [name, envVar(name)]));
  return Object.fromEntries(Object.entries(all).filter(([name]) => name !== 'LANG' && name !== 'LANGUAGE' && !name.startsWith('LC_')));
}

/** ssh's own `-J` would take neither our options nor the identity along: the same is spelled out as a command. */
function way(target: SshTarget, knownHosts: string): readonly string[] {
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
    ...way(hop, knownHosts),
  ];
  // Everything but the two fields that ssh is to fill in is kept from it by a second percent sign.
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

/** Settings as on the command line. */
export function settings(...texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => ['-o', text]);
}

/** A path within a setting of ssh: blanks would part it in two, and percent signs are fields. */
function quotedPath(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}
