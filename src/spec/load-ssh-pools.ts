import { dirname, join, resolve } from 'node:path';
import type { SshHost, SshPool } from '../domain/ssh-pool.ts';
import { SvcError } from '../shared/errors.ts';
import { homeDir } from '../shared/home-dir.ts';
import { findingsOf } from './findings.ts';
import { parsePartly } from './partial-parse.ts';
import { readTextFile } from './read-text-file.ts';
import { Report } from './report.ts';
import { sshPoolsSection, type PoolFields } from './schema/ssh-pools.ts';
import { SourceText } from './source-text.ts';
import { composeYaml } from './yaml/compose.ts';
import { dropNulls } from './yaml/drop-nulls.ts';
import { toValue, type MapNode, type YamlNode } from './yaml/node.ts';

/** Bytes (1 MiB). */
const maxPoolsBytes = 1_048_576;

/** Where SkyPilot keeps its pools: read when there are none of ours. */
const skypilotFile = (): string => join(homeDir(), '.sky', 'ssh_node_pools.yaml');

/**
 * Reads the user's pools of hosts: from `path`, or from SkyPilot's own file when there is none. Without either there are no pools.
 * Throws SVC_INVALID_CONFIG with all problems at once, or SVC_FILE_UNREADABLE.
 */
export async function loadSshPools(path: string, otherwise: string = skypilotFile()): Promise<readonly SshPool[]> {
  for (const file of [path, otherwise]) {
    const text = textOf(file);
    if (text !== undefined) return parseSshPools(text, file);
  }
  return [];
}

function textOf(path: string): string | undefined {
  try {
    return readTextFile(path, 'The file of SSH pools', maxPoolsBytes, (file) => {
      return new SvcError('SVC_INVALID_CONFIG', `${file} is larger than 1 MiB, which no list of hosts needs to be.`);
    });
  } catch (error: unknown) {
    if (error instanceof SvcError && error.code === 'SVC_FILE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** The text of such a file as pools. An empty one, or one of comments only, has none. */
export function parseSshPools(text: string, file: string): readonly SshPool[] {
  if (text.split('\n').every((line) => /^\s*(#|$)/.test(line))) return [];
  const source = new SourceText(text, file);
  const composed = composeYaml(source);
  const root = composed.root?.kind === 'map' ? dropNulls(composed.root, nullable(composed.root)) : undefined;
  // Excerpts show lines around a problem: never a password.
  const report = new Report(source, root, () => (root === undefined ? [] : passwordsIn(root)));
  for (const fault of composed.faults) report.fault(fault);
  if (composed.root !== undefined && root === undefined) report.at([], 'expected a map of pools, each with its hosts');
  let fields: Readonly<Record<string, PoolFields>> = {};
  if (root !== undefined) {
    const { output, issues } = parsePartly(sshPoolsSection, toValue(root));
    for (const finding of findingsOf(issues, { root, homes: new Map() })) {
      if (finding.key) report.atKey(finding.path, finding.message, finding.hint);
      else report.at(finding.path, finding.message, finding.hint);
    }
    fields = output ?? {};
  }
  const pools = Object.entries(fields).map(([name, pool]) => readPool(name, pool, file, report));
  if (!report.isEmpty) throw report.toError('SVC_INVALID_CONFIG', 'The file of SSH pools');
  return pools;
}

/** Fields without a value are as good as absent, as in SkyPilot's own examples. */
function nullable(root: MapNode): readonly (readonly string[])[] {
  return [...root.entries.keys()].flatMap((name) => [[name], [name, 'hosts', '*']]);
}

function readPool(name: string, pool: PoolFields, file: string, report: Report): SshPool {
  refusePassword(pool, [name], report);
  const seen = new Set<string>();
  const hosts = pool.hosts.map((entry, index): SshHost => {
    const own = typeof entry === 'string' ? { ip: entry } : entry;
    refusePassword(own, [name, 'hosts', index], report);
    if (seen.has(own.ip)) report.at([name, 'hosts', index], `the pool has the host ${own.ip} twice`);
    seen.add(own.ip);
    const all = { ...pool, ...own };
    return {
      host: own.ip,
      user: all.user,
      port: all.port,
      identityFile: all.identity_file === undefined ? undefined : absolute(all.identity_file, file),
      proxyJump: all.proxy_jump,
      hourlyUsd: all.hourly_usd ?? 0,
    };
  });
  return { name, file, hosts };
}

function refusePassword(fields: { readonly password?: unknown }, path: readonly PropertyKey[], report: Report): void {
  if (fields.password === undefined) return;
  report.atKey(
    [...path, 'password'],
    'hosts are reached with keys, not with passwords, as nobody is there to type or to keep one',
    'Put your key there with ssh-copy-id USER@HOST and remove this line; replicas need no sudo either.',
  );
}

function absolute(path: string, file: string): string {
  return path === '~' || path.startsWith('~/') ? join(homeDir(), path.slice(1)) : resolve(dirname(file), path);
}

/** What stands under any key `password`, however deep. */
function passwordsIn(node: YamlNode): readonly string[] {
  if (node.kind === 'list') return node.items.flatMap(passwordsIn);
  if (node.kind === 'scalar') return [];
  return [...node.entries].flatMap(([key, { value }]) =>
    key === 'password' && value.kind === 'scalar' ? [value.text].filter((text) => text !== '') : passwordsIn(value),
  );
}
