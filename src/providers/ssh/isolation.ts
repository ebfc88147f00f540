import { readFile } from 'node:fs/promises';
import { enterComplaint, enterConf, insideResolvConf, type EnterSettings } from '../../remote/isolation/enter-settings.ts';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programEntry, programFile } from '../../shared/program-files.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { Host } from './host.ts';
import type { HostFacts } from './host-facts.ts';
import type { SentFile } from './host-link.ts';
import { valueOf } from './host-reply.ts';
import { provideNode } from './node-binary.ts';

/** How machines on a host are kept apart, and why nothing better is used. */
export interface HostIsolation {
  readonly kind: IsolationKind;
  readonly outbound: OutboundKind;
  /** Better ones that were tried and failed, with the reason. */
  readonly refused: readonly (readonly [name: string, why: string])[];
}

/** An isolation, with the Node binary that its machines need. */
export interface UsableIsolation extends HostIsolation {
  readonly node: string | undefined;
}

/** Seconds that a try may take: a good one takes 10 to 100 ms, a busy host longer. */
const trySeconds = 10;

/** Linux allows 107 bytes for a socket's path, and ours have a suffix while they are made. */
const longestSocketPath = 100;

/** What each kind cannot do without. */
const neededTools: Readonly<Record<Exclude<IsolationKind, 'none'>, readonly string[]>> = {
  root: ['unshare', 'setpriv', 'ip'],
  userns: ['unshare', 'setpriv', 'ip'],
  bwrap: ['bwrap', 'setpriv', 'ip'],
};

/** The best isolation that works on a host, found by really doing each once. Throws only when the host cannot be reached. */
export async function findIsolation(host: Host, facts: HostFacts): Promise<HostIsolation> {
  const refused: (readonly [string, string])[] = [];
  for (const kind of ['root', 'userns', 'bwrap'] as const) {
    // To an ordinary user this is no finding.
    if (kind === 'root' && facts.uid !== 0) continue;
    const missing = neededTools[kind].filter((tool) => !facts.tools.has(tool));
    const why = missing.length > 0 ? `it has no ${missing.join(', ')}` : await tryEntering(host, facts, kind, 'none', ['true']);
    if (why === undefined) {
      const outbound = await findOutbound(host, facts, kind);
      return { kind, outbound: outbound.kind, refused: [...refused, ...outbound.refused] };
    }
    refused.push([kind, why]);
  }
  return { kind: 'none', outbound: 'host', refused };
}

/** The isolation together with the Node binary it needs; without one there is no isolation. */
export async function withNode(host: Host, facts: HostFacts, isolation: HostIsolation, paths: HomePaths): Promise<UsableIsolation> {
  if (isolation.kind === 'none') return { ...isolation, node: undefined };
  try {
    return { ...isolation, node: await provideNode(host, facts, paths) };
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'SVC_HOST_UNFIT') throw error;
    return { kind: 'none', outbound: 'host', refused: [...isolation.refused, [isolation.kind, error.message]], node: undefined };
  }
}

async function findOutbound(
  host: Host,
  facts: HostFacts,
  kind: IsolationKind,
): Promise<{ readonly kind: OutboundKind; readonly refused: HostIsolation['refused'] }> {
  if (!facts.hasRoute) return { kind: 'none', refused: [] };
  const refused: (readonly [string, string])[] = [];
  for (const outbound of ['slirp4netns', 'pasta'] as const) {
    const hasRoute = ['sh', '-c', 'ip -4 route show default | grep -q default'];
    const why = facts.tools.has(outbound) ? await tryEntering(host, facts, kind, outbound, hasRoute) : 'it is not there';
    if (why === undefined) return { kind: outbound, refused };
    refused.push([outbound, why]);
  }
  return { kind: 'proxy', refused };
}

/** Really enters the isolation and runs a command there. Undefined when it ended with 0, else why not. */
async function tryEntering(
  host: Host,
  facts: HostFacts,
  isolation: IsolationKind,
  outbound: OutboundKind,
  argv: readonly string[],
): Promise<string | undefined> {
  const name = `try-${randomHex(12)}`;
  const dir = `${facts.home}/.svc/${name}`;
  if (Buffer.byteLength(`${dir}/way.sock`) > longestSocketPath) return `the path of its home folder is too long for sockets`;
  // The program is not reached while trying: whether there is a Node binary is found out later.
  const sockets = { node: 'true', socket: `${dir}/way.sock`, proxySocket: `${dir}/way.out` };
  const files = await enterFiles({ isolation, outbound, ...sockets }, dir, facts);
  const question = { argv: ['try', name, String(trySeconds), ...argv], files, timeoutMs: (trySeconds + 10) * 1_000 } as const;
  const reply = await host.ask(question);
  const why = valueOf(reply, 'why');
  if (valueOf(reply, 'code') === '0') return undefined;
  return (why === undefined ? undefined : enterComplaint(why)) ?? `it ended with exit code ${valueOf(reply, 'code') ?? '?'}`;
}

const source = (file: string): Promise<string> => readFile(programFile(`src/node/${file}`), 'utf8');

/** The files in a machine's folder with which its isolation is entered; none where there is none. `dir`: that folder on the host. */
export async function enterFiles(
  settings: Omit<EnterSettings, 'egress' | 'keep'>,
  dir: string,
  facts: Pick<HostFacts, 'home' | 'resolvConf'>,
): Promise<readonly SentFile[]> {
  const { isolation, outbound } = settings;
  if (isolation === 'none') return [];
  const resolvConf = insideResolvConf(outbound, facts.resolvConf);
  const entry = programEntry('node/egress');
  // Without a package beside it, Node takes a module for one by its ending alone.
  const egress = `egress.${entry.endsWith('.ts') ? 'mts' : 'mjs'}`;
  const keep = facts.home.startsWith('/tmp/') ? [facts.home] : [];
  return [
    { name: 'enter.sh', mode: '600', content: await source('enter.sh') },
    { name: 'forwarder.mjs', mode: '600', content: await source('forwarder.mjs') },
    { name: 'enter.conf', mode: '600', content: enterConf({ ...settings, egress: `${dir}/${egress}`, keep }) },
    ...(outbound === 'proxy' ? [{ name: egress, mode: '600', content: await readFile(entry, 'utf8') }] : []),
    ...(resolvConf === undefined ? [] : [{ name: 'resolv.conf', mode: '644', content: resolvConf }]),
  ];
}

/** What to do for something better than what was found; empty when nothing is. */
export function isolationRemedies({ kind }: HostIsolation, facts: HostFacts): readonly string[] {
  if (kind !== 'none') return [];
  const remedies: string[] = [];
  if (facts.apparmorRestricts)
    remedies.push('AppArmor refuses user namespaces there: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0');
  if (facts.maxUserNamespaces === 0) remedies.push('sudo sysctl user.max_user_namespaces=15000');
  const missing = [...new Set(Object.values(neededTools).flat())].filter((tool) => tool !== 'bwrap' && !facts.tools.has(tool));
  if (missing.length > 0) remedies.push(`Install util-linux and iproute2 there, for ${missing.join(', ')}`);
  return remedies;
}
