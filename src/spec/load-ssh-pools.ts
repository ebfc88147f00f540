import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import type { SshHost, SshPool } from '../domain/config.ts';
import { SvcError } from '../shared/errors.ts';
import { homeDir } from '../shared/env.ts';
import { findingsOf } from './findings.ts';
import { parsePartly } from './partial-parse.ts';
import { readTextFile } from './read-text-file.ts';
import { Report } from './report.ts';
import { SourceText } from './source-text.ts';
import { composeYaml } from './yaml/compose.ts';
import { dropNulls } from './yaml/drop-nulls.ts';
import { type MapNode, type YamlNode, toValue } from './yaml/node.ts';
import { anything, field, port, required, section, someText } from './schema/kit.ts';

/** 1 MiB. */
const maxPoolsBytes = 1_048_576;

/** SkyPilot's pools file: read when svc has none. */
const skypilotFile = (): string => join(homeDir(), '.sky', 'ssh_node_pools.yaml');

/**
 * Reads the user's pools of SSH hosts from `path`, or if it does not exist from SkyPilot's file; none without either.
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

/** Parses the text of a pools file. An empty file, or one of comments only, has no pools. */
export function parseSshPools(text: string, file: string): readonly SshPool[] {
  if (text.split('\n').every((line) => /^\s*(#|$)/.test(line))) return [];
  const source = new SourceText(text, file);
  const composed = composeYaml(source);
  const root = composed.root?.kind === 'map' ? dropNulls(composed.root, nullable(composed.root)) : undefined;
  // Excerpts show lines around a problem; they must never show a password.
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

/** Fields without a value count as absent, as in SkyPilot's own examples. */
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
      maxProcesses: all.max_processes,
    };
  });
  return { name, file, hosts };
}

function refusePassword(fields: { readonly password?: unknown }, path: readonly PropertyKey[], report: Report): void {
  if (fields.password === undefined) return;
  report.atKey(
    [...path, 'password'],
    'a host is reached with a key: no user is present to type a password',
    'Put your key there with ssh-copy-id USER@HOST and remove this line; replicas need no sudo either.',
  );
}

function absolute(path: string, file: string): string {
  return path === '~' || path.startsWith('~/') ? join(homeDir(), path.slice(1)) : resolve(dirname(file), path);
}

/** All values under a key `password`, at any depth. */
function passwordsIn(node: YamlNode): readonly string[] {
  if (node.kind === 'list') return node.items.flatMap(passwordsIn);
  if (node.kind === 'scalar') return [];
  return [...node.entries].flatMap(([key, { value }]) =>
    key === 'password' && value.kind === 'scalar' ? [value.text].filter((text) => text !== '') : passwordsIn(value),
  );
}

/** No leading dash, which `ssh` would read as an option, and no space. */
const word = /^[^\s-]\S*$/;

const hostName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.:%-]*$/, 'is not an address, a host name or an alias of ~/.ssh/config\nGive a user with user: NAME');
const userName = z.string().regex(/^[A-Za-z0-9_.][^\s@]*$/, 'is not the name of a user');
const jump = z.string().regex(word, 'must be HOST, USER@HOST or USER@HOST:PORT, several with commas in between');

/** SSH access settings. Settings of a pool apply to those of its SSH hosts that have none of their own. */
const access = {
  user: field(userName, 'User to log in as.', { words: 'as `~/.ssh/config` says' }),
  identity_file: field(someText, 'Private key. `~` is the home folder; other relative paths begin at the folder of this file.', {
    words: "the user's own keys and agent",
  }),
  port: field(port, 'Port of SSH.', { words: '22, or as `~/.ssh/config` says' }),
  proxy_jump: field(jump, 'Host to go through, as for `ssh -J`.', { words: 'none, or as `~/.ssh/config` says' }),
  hourly_usd: field(z.number().min(0).max(100_000), 'What an hour of the host costs, in US dollars, when locations are compared.', 0),
  max_processes: field(z.int().min(50).max(4_194_304), 'Limit of the processes and threads of one replica, 50 or more.', {
    words: "a quarter of the host's process ids, at most 16384",
  }),
  password: field(anything, 'Not supported: a host is reached with a key. SkyPilot knows the field.', { words: 'none' }),
};

const host = section({ ip: required(hostName, 'Address, host name, or alias of `~/.ssh/config`.'), ...access });

const poolSection = section({
  ...access,
  hosts: required(
    z
      .array(z.union([hostName, host]))
      .min(1)
      .max(1_000),
    'The hosts, by name or in detail.',
  ),
});

/** The pools file: one entry per pool, by name. */
export const sshPoolsSection = z.record(z.string().regex(word, 'is not the name of a pool: it must have no spaces'), poolSection);

type PoolFields = z.output<typeof poolSection>;
