import { readFileSync } from 'node:fs';
import type { BalancerConfig } from '../domain/balancer-link.ts';
import { loadBalancingPolicies } from '../domain/task.ts';
import { messageOf, SvcError } from '../shared/errors.ts';

const kinds = {
  service: 'string',
  host: 'string',
  port: 'number',
  policy: 'string',
  controlSocket: 'string',
  lastReplicasFile: 'string',
  accessLog: 'string',
  firstByteTimeoutMs: 'number',
  idleTimeoutMs: 'number',
  retryUnsafe: 'boolean',
  exposeReplica: 'boolean',
  replicaWaitMs: 'number',
  retryAfterSeconds: 'number',
} as const satisfies Record<Exclude<keyof BalancerConfig, 'maxBodyBytes'>, 'string' | 'number' | 'boolean'>;

/** Reads what the process was started with. Throws SVC_INVALID_CONFIG naming the first field that is not as it should be. */
export function readConfigFile(path: string): BalancerConfig {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new SvcError('SVC_INVALID_CONFIG', `The balancer's configuration ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const wrong = wrongField(value);
  if (wrong !== undefined) throw new SvcError('SVC_INVALID_CONFIG', `The balancer's configuration ${path} has a bad ${wrong}.`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field was looked at just now
  return value as BalancerConfig;
}

function wrongField(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return 'content';
  const fields: Readonly<Record<string, unknown>> = { ...value };
  for (const [name, kind] of Object.entries(kinds)) if (typeof fields[name] !== kind) return name;
  const { maxBodyBytes, policy } = fields;
  if (maxBodyBytes !== null && typeof maxBodyBytes !== 'number') return 'maxBodyBytes';
  return loadBalancingPolicies.some((known) => known === policy) ? undefined : 'policy';
}
