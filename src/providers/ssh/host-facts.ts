import { parseGpuList, type Gpu } from '../../domain/gpus.ts';
import { type FoundLimits, readLimits } from '../../remote/isolation/limits.ts';
import { isOlderVersion } from '../../shared/version.ts';
import { valueOf, type HostReply } from './host-link.ts';

/** What an SSH host reported about itself. */
export interface HostFacts {
  readonly system: string;
  /** As `uname -m` reports it: `x86_64`, `aarch64`. */
  readonly arch: string;
  /** `glibc 2.36`, `musl` or `unknown`. */
  readonly libc: string;
  readonly uid: number;
  readonly user: string;
  readonly home: string;
  /** Folder of its machines. */
  readonly dir: string;
  readonly cpus: number;
  readonly memoryGb: number;
  /** Below the user's home. */
  readonly freeBytes: number;
  readonly isWritable: boolean;
  readonly gpus: readonly Gpu[];
  /** Commands that `look` searched for and found. */
  readonly tools: ReadonlySet<string>;
  readonly node: { readonly path: string; readonly version: string } | undefined;
  /** Whether it can reach another computer. */
  readonly hasRoute: boolean;
  /** Kernel settings that can keep users from creating namespaces. */
  readonly apparmorRestricts: boolean;
  readonly maxUserNamespaces: number | undefined;
  /** How short names are completed: lines of /etc/resolv.conf. */
  readonly resolvConf: string;
  readonly limits: FoundLimits;
}

const kibPerGb = 1_048_576;

/** Parses the reply to `look facts`. */
export function readFacts(reply: HostReply): HostFacts {
  const text = (name: string): string => valueOf(reply, name) ?? '';
  const number = (name: string): number => Number(valueOf(reply, name) ?? 0) || 0;
  const [node, version] = [valueOf(reply, 'node'), valueOf(reply, 'node_version')];
  return {
    system: text('system'),
    arch: text('arch'),
    libc: text('libc'),
    uid: number('uid'),
    user: text('user'),
    home: text('home'),
    dir: text('dir'),
    cpus: number('cpus'),
    memoryGb: Math.round((number('memory_kb') / kibPerGb) * 10) / 10,
    ...readDisk(reply),
    gpus: parseGpuList((reply.get('gpu') ?? []).join('\n')),
    tools: new Set(text('tools').split(' ')),
    node: node === undefined || version === undefined ? undefined : { path: node, version: version.replace(/^v/, '') },
    hasRoute: text('route') === 'yes',
    apparmorRestricts: text('apparmor_userns') === '1',
    maxUserNamespaces: valueOf(reply, 'max_userns') === undefined ? undefined : number('max_userns'),
    limits: readLimits(valueOf(reply, 'limits'), valueOf(reply, 'limits_lack')),
    resolvConf: (reply.get('resolv') ?? []).map((line) => `${line}\n`).join(''),
  };
}

/** Every reply to `look` has the disk's state, because it changes often. */
export function readDisk(reply: HostReply): Pick<HostFacts, 'freeBytes' | 'isWritable'> {
  return { freeBytes: (Number(valueOf(reply, 'free_kb') ?? 0) || 0) * 1_024, isWritable: valueOf(reply, 'writable') === 'yes' };
}

/** The oldest glibc for the pinned Node.js (its BUILDING.md). */
const oldestGlibc = '2.28';

/** With less free space, a program that logs, or a copy of a workdir, would fill the disk. */
export const minFreeBytes = 100 * 1_048_576;

/** Commands that every machine needs, with the package to install. */
const needed = [
  ['flock', 'util-linux'],
  ['setsid', 'util-linux'],
  ['timeout', 'coreutils'],
] as const;

/** Why an SSH host cannot take replicas; undefined when it can. */
export function whyUnfit(facts: HostFacts): { readonly why: string; readonly remedy: string } | undefined {
  if (facts.system !== 'Linux') return { why: `it runs ${facts.system || 'an unknown system'}, not Linux`, remedy: 'Use a Linux host' };
  const glibc = /^glibc (\d+(?:\.\d+)*)/.exec(facts.libc)?.[1];
  if (glibc === undefined) {
    const what = facts.libc === 'musl' ? 'its C library is musl, not glibc' : 'it has no glibc';
    return { why: what, remedy: `Use a host with glibc ${oldestGlibc} or newer (Debian 10, Ubuntu 18.10, RHEL 8)` };
  }
  if (isOlderVersion(glibc, oldestGlibc)) {
    return { why: `its glibc is ${glibc}, older than ${oldestGlibc}`, remedy: `Upgrade it to a system with glibc ${oldestGlibc} or newer` };
  }
  const missing = needed.filter(([command]) => !facts.tools.has(command));
  if (missing.length > 0) {
    const packages = [...new Set(missing.map(([, name]) => name))].join(' ');
    return { why: `it lacks ${missing.map(([command]) => command).join(', ')}`, remedy: `Install there: ${packages}` };
  }
  if (!facts.isWritable) return { why: `${facts.dir} cannot be written`, remedy: `Let ${facts.user} write below ${facts.home}` };
  if (facts.freeBytes < minFreeBytes) {
    return { why: `it has ${Math.floor(facts.freeBytes / 1_048_576)} MB of disk left`, remedy: `Free space below ${facts.home}` };
  }
  return undefined;
}
