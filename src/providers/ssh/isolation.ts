import { readFile } from 'node:fs/promises';
import { type EnterSettings, enterComplaint, enterConf, insideResolvConf } from '../../remote/isolation/enter-settings.ts';
import { type FoundIsolation, findIsolation, kindsFor } from '../../remote/isolation/find-isolation.ts';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programEntry, programFile } from '../../shared/program-files.ts';
import { randomHex } from '../../shared/hex.ts';
import type { Host, HostState } from './host.ts';
import type { HostFacts } from './host-facts.ts';
import { type SentFile, valueOf } from './host-link.ts';
import { provideNode } from './node-binary.ts';

/** An isolation with the Node binary that its machines need. */
export interface UsableIsolation extends FoundIsolation {
  readonly node: string | undefined;
}

/** A good try takes 10 to 100 ms, on a busy SSH host seconds. An aborted try counts as failed until a reboot. */
const trySeconds = 20;

/** Bytes. Linux allows 107 for a socket's path, and svc's sockets have a suffix while they are created. */
const longestSocketPath = 100;

const neededTools: Readonly<Record<Exclude<IsolationKind, 'none'>, readonly string[]>> = {
  root: ['unshare', 'setpriv', 'ip'],
  userns: ['unshare', 'setpriv', 'ip'],
  bwrap: ['bwrap', 'setpriv', 'ip'],
};

/** In enter.sh, Perl replaces `ip`. */
const hasTool = ({ tools }: HostFacts, tool: string): boolean => tools.has(tool) || (tool === 'ip' && tools.has('perl'));

/** Throws only when the SSH host cannot be reached. */
async function findHostIsolation(host: Host, facts: HostFacts): Promise<FoundIsolation> {
  return findIsolation(kindsFor({ isRoot: facts.uid === 0 }), {
    hasRoute: () => facts.hasRoute,
    whyNot: async (kind, outbound, argv) => lacking(facts, kind, outbound) ?? tryEntering(host, facts, kind, outbound, argv),
  });
}

/** Missing tools make a try pointless. */
function lacking(facts: HostFacts, kind: Exclude<IsolationKind, 'none'>, outbound: OutboundKind): string | undefined {
  const missing = neededTools[kind].filter((tool) => !hasTool(facts, tool));
  if (missing.length > 0) return `it has no ${missing.join(', ')}`;
  return outbound === 'none' || facts.tools.has(outbound) ? undefined : 'it is not there';
}

/** Without a Node binary there is no isolation. */
async function withNode(host: Host, facts: HostFacts, isolation: FoundIsolation, paths: HomePaths): Promise<UsableIsolation> {
  if (isolation.kind === 'none') return { ...isolation, node: undefined };
  try {
    return { ...isolation, node: await provideNode(host, facts, paths) };
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'SVC_HOST_UNFIT') throw error;
    return { kind: 'none', outbound: 'host', refused: [...isolation.refused, [isolation.kind, error.message]], node: undefined };
  }
}

/** Runs a command in the isolation. Returns why it did not exit with 0. */
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
  // A try needs no connection to the program, so a dummy replaces Node; `withNode` provides it later.
  const sockets = { node: 'true', socket: `${dir}/way.sock`, proxySocket: `${dir}/way.out` };
  const files = await enterFiles({ isolation, outbound, ...sockets }, dir, facts);
  const question = { argv: ['try', name, String(trySeconds), ...argv], files, timeoutMs: (trySeconds + 10) * 1_000 } as const;
  const reply = await host.ask(question);
  const why = valueOf(reply, 'why');
  if (valueOf(reply, 'code') === '0') return undefined;
  return (why === undefined ? undefined : enterComplaint(why)) ?? `it ended with exit code ${valueOf(reply, 'code') ?? '?'}`;
}

const source = (file: string): Promise<string> => readFile(programFile(`src/node/${file}`), 'utf8');

/** `dir`: the machine's folder on the SSH host. Empty without isolation. */
export async function enterFiles(
  settings: Omit<EnterSettings, 'egress' | 'keep' | 'hide'>,
  dir: string,
  facts: Pick<HostFacts, 'home' | 'resolvConf'>,
): Promise<readonly SentFile[]> {
  const { isolation, outbound } = settings;
  if (isolation === 'none') return [];
  const resolvConf = insideResolvConf(outbound, facts.resolvConf);
  const entry = programEntry('node/egress');
  // Without package.json, Node recognises an ES module only by its extension.
  const egress = `egress.${entry.endsWith('.ts') ? 'mts' : 'mjs'}`;
  const keep = facts.home.startsWith('/tmp/') ? [facts.home] : [];
  return [
    { name: 'enter.sh', mode: '600', content: await source('enter.sh') },
    { name: 'confine.sh', mode: '600', content: await source('confine.sh') },
    { name: 'forwarder.mjs', mode: '600', content: await source('forwarder.mjs') },
    {
      name: 'enter.conf',
      mode: '600',
      content: enterConf({ ...settings, egress: `${dir}/${egress}`, keep, hide: [`${facts.home}/.svc`] }),
    },
    ...(outbound === 'proxy' ? [{ name: egress, mode: '600', content: await readFile(entry, 'utf8') }] : []),
    ...(resolvConf === undefined ? [] : [{ name: 'resolv.conf', mode: '644', content: resolvConf }]),
  ];
}

/** Empty when there is no better isolation. */
export function isolationRemedies({ kind }: FoundIsolation, facts: HostFacts): readonly string[] {
  if (kind !== 'none') return [];
  const remedies: string[] = [];
  if (facts.apparmorRestricts)
    remedies.push('AppArmor refuses user namespaces there: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0');
  if (facts.maxUserNamespaces === 0) remedies.push('sudo sysctl user.max_user_namespaces=15000');
  const missing = [...new Set(Object.values(neededTools).flat())].filter((tool) => tool !== 'bwrap' && !hasTool(facts, tool));
  if (missing.length > 0) remedies.push(`Install util-linux and iproute2 there, for ${missing.join(', ')}`);
  return remedies;
}

/** `of`: the boot and the user of the finding. With others, another isolation may work. */
interface Found<What> {
  readonly of: string;
  readonly what: Promise<What>;
}

/** Tries isolations once per process, SSH host and boot. */
export class IsolationCache {
  readonly #paths: HomePaths;
  readonly #kinds = new WeakMap<Host, Found<FoundIsolation>>();
  readonly #usable = new WeakMap<Host, Found<UsableIsolation>>();

  constructor(paths: HomePaths) {
    this.#paths = paths;
  }

  /** Throws only when the SSH host cannot be reached. */
  kindOn(host: Host, state: HostState): Promise<FoundIsolation> {
    return remember(this.#kinds, host, state, () => findHostIsolation(host, state.facts));
  }

  /** Also copies the required files to the SSH host: at the first call about 40 MB. */
  usableOn(host: Host, state: HostState): Promise<UsableIsolation> {
    return remember(this.#usable, host, state, async () => withNode(host, state.facts, await this.kindOn(host, state), this.#paths));
  }
}

function remember<What>(
  cache: WeakMap<Host, Found<What>>,
  host: Host,
  { facts, bootId }: HostState,
  find: () => Promise<What>,
): Promise<What> {
  const of = `${bootId} ${facts.uid} ${facts.home}`;
  const known = cache.get(host);
  if (known?.of === of) return known.what;
  const found = { of, what: find() };
  cache.set(host, found);
  // A failed attempt may succeed later.
  found.what.catch(() => cache.get(host) === found && cache.delete(host));
  return found.what;
}
