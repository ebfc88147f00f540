import { readFileSync } from 'node:fs';
import type { BalancerConfig, RequestQueueLimits } from '../../domain/balancer-link.ts';
import { passedSettings, type PassedSettings } from '../../domain/load-balancer.ts';
import { loadBalancingPolicies, replicaProtocols } from '../../domain/task.ts';
import { tlsSuites, tlsVersions } from '../../domain/tls-rules.ts';
import { isAddressRange } from '../../shared/address-range.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/hex.ts';
import { isObject } from '../../shared/json.ts';
import { isToken } from '../http1/octets.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const isAmount: Check = (value) => typeof value === 'number' && value >= 0;
const isCount: Check = (value) => isAmount(value) && Number.isInteger(value);
const isPositive: Check = (value) => isCount(value) && value !== 0;
const oneOf =
  (words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const eachIs =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const shaped =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(checks).every(([name, check]) => check(value[name]));

/** A cookie's name is a token too (RFC 6265, section 4.1.1). */
const isName: Check = (value) => typeof value === 'string' && isToken(value);
const isSession: Check = (value) => isObject(value) && ('cookie' in value ? isName(value['cookie']) : isName(value['header']));

const queueChecks = {
  maxRequests: isCount,
  maxBytes: isCount,
  timeoutMs: isAmount,
  fromZero: isFlag,
} as const satisfies Record<keyof RequestQueueLimits, Check>;

const passedChecks = passedSettings.map(({ passedAs, kind, canBeZero, isNullable }): [string, Check] => {
  const number = canBeZero ? isCount : isPositive;
  const check = {
    port: isCount,
    count: number,
    bytes: number,
    seconds: isAmount,
    flag: isFlag,
    'address-ranges': eachIs((value) => typeof value === 'string' && isAddressRange(value)),
  }[kind];
  return [passedAs, isNullable ? orNull(check) : check];
});

const checks = {
  service: isText,
  host: isText,
  port: isCount,
  threads: isPositive,
  policy: oneOf(loadBalancingPolicies),
  controlSocket: isText,
  lastReplicasFile: isText,
  accessLog: isText,
  metricsSocket: isText,
  tls: orNull(shaped({ keyFile: isText, certFile: isText, clientCaFile: (value) => value === undefined || isText(value) })),
  tlsRules: shaped({ minVersion: oneOf(tlsVersions), ciphers: eachIs(oneOf(tlsSuites)) }),
  protocol: oneOf(replicaProtocols),
  queue: shaped(queueChecks),
  retryAfterSeconds: isAmount,
  session: (value) => value === undefined || isSession(value),
} as const satisfies Record<Exclude<keyof BalancerConfig, keyof PassedSettings>, Check>;

/** A configuration and its fingerprint. */
export interface LoadedConfig {
  readonly config: BalancerConfig;
  /** Fingerprint of the file's text. */
  readonly fingerprint: string;
}

/** Reads the process's configuration. Throws SVC_INVALID_CONFIG naming the first invalid field. */
export function readConfigFile(path: string): LoadedConfig {
  let text: string;
  let value: unknown;
  try {
    text = readFileSync(path, 'utf8');
    value = JSON.parse(text);
  } catch (error) {
    throw new SvcError('SVC_INVALID_CONFIG', `The balancer's configuration ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const wrong = wrongField(value);
  if (wrong !== undefined) throw new SvcError('SVC_INVALID_CONFIG', `The balancer's configuration ${path} has a bad ${wrong}.`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field was looked at just now
  return { config: value as BalancerConfig, fingerprint: fingerprint(text) };
}

function wrongField(value: unknown): string | undefined {
  if (!isObject(value)) return 'content';
  return [...Object.entries(checks), ...passedChecks].find(([name, check]) => !check(value[name]))?.[0];
}
