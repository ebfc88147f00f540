import { existsSync, readFileSync } from 'node:fs';
import { whyNoNamespaces } from '../namespaces.ts';

/** `api`: a control plane without nodes, which works without root; `nodes`: with real pods. */
export type ClusterKind = 'api' | 'nodes';

const programs = readFileSync(new URL('programs.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.split(' '))
  .map(([path = '', debianPackage = '', neededBy = '']) => ({ path, debianPackage, neededBy }));

/**
 * Returns why a cluster of that kind cannot run; undefined when it can. In CI as root it throws instead, because
 * clusters must run.
 */
export function whyNoKubernetes(kind: ClusterKind): string | undefined {
  const reason = findReason(kind);
  if (reason !== undefined && process.env['CI'] !== undefined && isRoot()) throw new Error(`no Kubernetes: ${reason}`);
  return reason;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function findReason(kind: ClusterKind): string | undefined {
  if (process.platform !== 'linux') return 'only Linux can have it';
  if (kind === 'nodes' && !isRoot()) return 'only root can have nodes';
  const isBuilt = process.env['SVC_TESTBED_BIN'] !== undefined;
  const uses = ['all', ...(isBuilt ? [] : ['build']), ...(kind === 'nodes' ? ['nodes'] : [])];
  const missing = programs.filter(({ path, neededBy }) => uses.includes(neededBy) && !existsSync(path));
  if (missing.length > 0) return `not installed: ${missing.map(({ debianPackage }) => debianPackage).join(' ')}`;
  return kind === 'nodes' ? whyNoNamespaces() : undefined;
}
