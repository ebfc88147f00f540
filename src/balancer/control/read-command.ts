import type { BalancerCommand, BalancerReplica, RemainingCommand, ReplicasCommand } from '../../domain/balancer-link.ts';
import { replicaPhases, type ExpectedReplica } from '../../domain/expected-replica.ts';
import type { Outcomes, ReplicaOutcomes } from '../../domain/outcomes.ts';
import { isObject } from '../../shared/json.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';

type Json = Readonly<Record<string, unknown>>;

const maxPort = 65_535;

/** Reads one line of the control socket; undefined when the command is unknown or invalid. Pure. */
export function readCommand(line: string): BalancerCommand | undefined {
  const value = parseObject(line);
  switch (value?.['type']) {
    case 'replicas':
      return readReplicasCommand(value);
    case 'hand-over':
      return { type: 'hand-over' };
    case 'remaining':
      return readRemaining(value);
    default:
      return undefined;
  }
}

function readReplicasCommand(value: Json): ReplicasCommand | undefined {
  const set = readSet(value);
  const replicas = readReplicas(value['replicas']);
  if (set === undefined || replicas === undefined) return undefined;
  const expected = readExpected(value['expected']);
  return { type: 'replicas', ...set, replicas, ...(expected && { expected }) };
}

/** Undefined when it is absent or invalid: it decides only texts, so it must not cost the whole set. */
function readExpected(value: unknown): ExpectedReplica | undefined {
  if (!isObject(value)) return undefined;
  const { readyAt } = value;
  const phase = replicaPhases.find((one) => one === value['phase']);
  return phase && { phase, ...(isCount(readyAt) && { readyAt }) };
}

function readRemaining(value: Json): RemainingCommand | undefined {
  const { requests, errors } = value;
  const inFlight = readCounts(value['inFlight']);
  const applied = isObject(value['applied']) ? readSet(value['applied']) : null;
  const outcomes = value['outcomes'] === undefined ? {} : readOutcomes(value['outcomes']);
  if (typeof requests !== 'number' || typeof errors !== 'number' || inFlight === undefined || applied === undefined) return undefined;
  if (outcomes === undefined) return undefined;
  return { type: 'remaining', requests, errors, inFlight, applied, ...(value['outcomes'] !== undefined && { outcomes }) };
}

function readSet({ epoch, revision }: Json): { readonly epoch: string; readonly revision: number } | undefined {
  return typeof epoch === 'string' && typeof revision === 'number' ? { epoch, revision } : undefined;
}

function readCounts(value: unknown): Readonly<Record<string, number>> | undefined {
  if (!isObject(value)) return undefined;
  const counts: Record<string, number> = {};
  for (const [id, count] of Object.entries(value)) {
    if (typeof count !== 'number') return undefined;
    counts[id] = count;
  }
  return counts;
}

function readOutcomes(value: unknown): Outcomes | undefined {
  if (!isObject(value)) return undefined;
  const outcomes: Record<string, ReplicaOutcomes> = {};
  for (const [id, counts] of Object.entries(value)) {
    if (!isObject(counts)) return undefined;
    const { responses, errors, firstByteCounts, waitCounts } = counts;
    if (!isCount(responses) || !isCount(errors) || !areCounts(firstByteCounts)) return undefined;
    if (waitCounts !== undefined && !areCounts(waitCounts)) return undefined;
    outcomes[id] = { responses, errors, firstByteCounts, ...(waitCounts !== undefined && { waitCounts }) };
  }
  return outcomes;
}

const areCounts = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every(isCount);

const isCount = (value: unknown): value is number => typeof value === 'number' && value >= 0;

/** Reads a list of replicas; undefined when any part of it is invalid. Pure. */
export function readReplicas(value: unknown): readonly BalancerReplica[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const replicas: BalancerReplica[] = [];
  for (const element of value) {
    const replica = readReplica(element);
    if (replica === undefined) return undefined;
    replicas.push(replica);
  }
  return replicas;
}

function readReplica(value: unknown): BalancerReplica | undefined {
  if (!isObject(value)) return undefined;
  const { id, weight, state, place: location, lost, version, share } = value;
  const address = readAddress(value['address']);
  if (!Number.isSafeInteger(id) || typeof id !== 'number' || address === undefined) return undefined;
  if (typeof weight !== 'number' || !(weight > 0) || (state !== 'serving' && state !== 'draining')) return undefined;
  if (typeof location !== 'string') return undefined;
  if (version !== undefined && !(isCount(version) && Number.isSafeInteger(version) && version > 0)) return undefined;
  if (share !== undefined && !(isCount(share) && share <= 1)) return undefined;
  return {
    id,
    address,
    place: location,
    weight,
    state,
    ...((lost === 'hung' || lost === 'gone') && { lost }),
    ...(version !== undefined && { version }),
    ...(share !== undefined && { share }),
  };
}

function readAddress(value: unknown): ReplicaAddress | undefined {
  if (!isObject(value)) return undefined;
  const { kind, host, path, port } = value;
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > maxPort) return undefined;
  if (kind === 'tcp' && typeof host === 'string' && host !== '') return { kind, host, port };
  if ((kind === 'unix' || kind === 'forward') && typeof path === 'string' && path !== '') return { kind, path, port };
  return undefined;
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    // Not JSON: the caller logs it, with the line's length rather than its content.
    return undefined;
  }
}
