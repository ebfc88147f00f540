import { readFile } from 'node:fs/promises';
import { enterComplaint, enterConf, insideResolvConf, type EnterSettings } from '../../remote/isolation/enter-settings.ts';
import { findIsolation, kindsFor, type FoundIsolation } from '../../remote/isolation/find-isolation.ts';
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

/** An isolation, with the Node binary that its machines need. */
export interface UsableIsolation extends FoundIsolation {
  readonly node: string | undefined;
}

/** Seconds that a try may take: a good one takes 10 to 100 ms, on a busy host seconds. One that is given up is remembered until the host starts anew. */
const trySeconds = 20;

/** Linux allows 107 bytes for a socket's path, and ours have a suffix while they are made. */
const longestSocketPath = 100;

/** What each kind cannot do without. */
const neededTools: Readonly<Record<Exclude<IsolationKind, 'none'>, readonly string[]>> = {
  root: ['unshare', 'setpriv', 'ip'],
  userns: ['unshare', 'setpriv', 'ip'],
  bwrap: ['bwrap', 'setpriv', 'ip'],
};

/** The best isolation that works on a host. Throws only when the host cannot be reached. */
export async function findHostIsolation(host: Host, facts: HostFacts): Promise<FoundIsolation> {
  return findIsolation(kindsFor({ isRoot: facts.uid === 0 }), {
    hasRoute: () => facts.hasRoute,
    whyNot: async (kind, outbound, argv) => lacking(facts, kind, outbound) ?? tryEntering(host, facts, kind, outbound, argv),
  });
}

/** Why a try is not worth its time; undefined when the tools are there. */
function lacking({ tools }: HostFacts, kind: Exclude<IsolationKind, 'none'>, outbound: OutboundKind): string | undefined {
  const missing = neededTools[kind].filter((tool) => !tools.has(tool));
  if (missing.length > 0) return `it has no ${missing.join(', ')}`;
  return outbound === 'none' || tools.has(outbound) ? undefined : 'it is not there';
}

/** The isolation together with the Node binary it needs; without one there is no isolation. */
export async function withNode(host: Host, facts: HostFacts, isolation: FoundIsolation, paths: HomePaths): Promise<UsableIsolation> {
  if (isolation.kind === 'none') return { ...isolation, node: undefined };
  try {
    return { ...isolation, node: await provideNode(host, facts, paths) };
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'SVC_HOST_UNFIT') throw error;
    return { kind: 'none', outbound: 'host', refused: [...isolation.refused, [isolation.kind, error.message]], node: undefined };
  }
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
export function isolationRemedies({ kind }: FoundIsolation, facts: HostFacts): readonly string[] {
  if (kind !== 'none') return [];
  const remedies: string[] = [];
  if (facts.apparmorRestricts)
    remedies.push('AppArmor refuses user namespaces there: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0');
  if (facts.maxUserNamespaces === 0) remedies.push('sudo sysctl user.max_user_namespaces=15000');
  const missing = [...new Set(Object.values(neededTools).flat())].filter((tool) => tool !== 'bwrap' && !facts.tools.has(tool));
  if (missing.length > 0) remedies.push(`Install util-linux and iproute2 there, for ${missing.join(', ')}`);
  return remedies;
}
