import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { Random } from '../../shared/random.ts';
import type { Clock } from '../../shared/clock.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import { allot, allotPorts } from './allotment.ts';
import { reasonOf, type Host, type HostState } from './host.ts';
import { minFreeBytes, whyUnfit } from './host-facts.ts';
import type { HostReply } from './host-reply.ts';
import { valueOf } from './host-reply.ts';
import { enterFiles, type UsableIsolation } from './isolation.ts';
import type { MachineIndex } from './machine-index.ts';
import { cookieVariable } from '../machine-environment.ts';
import { parseMachineRecord, type MachineRecord } from './machine-record.ts';

/** What making a machine needs. */
export interface Creation {
  readonly host: Host;
  readonly name: string;
  readonly key: string;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly index: MachineIndex;
  readonly clock: Clock;
  readonly random: Random;
  readonly isolation: (host: Host, state: HostState) => Promise<UsableIsolation>;
  readonly signal: AbortSignal | undefined;
}

/** The host waits 20 s for its lock, and files are sent before. */
const createTimeoutMs = 60_000;

/** Somebody else made a machine in between: that often it is decided anew. */
const attempts = 20;

/**
 * Makes a machine on a host, or finds the one with that name. What it gets is decided here on what the host said last, and the host refuses when
 * another machine was made since: then it is decided again.
 */
export async function createMachine(creation: Creation): Promise<MachineRecord> {
  const { host, name, index, signal } = creation;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const state = await lookFirst(host);
    const known = state.machines.find((machine) => machine.name === name);
    if (known !== undefined) return known;
    refuseUnfit(host, state);
    const isolation = await creation.isolation(host, state);
    signal?.throwIfAborted();
    const record = decide(creation, state, isolation);
    const entry = { pool: host.pool, host: host.host, name, tags: record.tags, askedAt: record.createdAt };
    // The intent first: from here on a host that falls silent may have it.
    index.put({ ...entry, record: undefined });
    const reply = await host.ask(await question(creation, state, isolation, record));
    const made = outcomeOf(reply, record, host.host.host);
    if (made === 'again') continue;
    if (made instanceof SvcError) {
      index.remove(host.pool, host.host.host, name);
      throw made;
    }
    index.put({ ...entry, tags: made.tags, record: made });
    return made;
  }
  throw new SvcError('SVC_PLACE_FAILED', `Machines are made on the host ${host.host.host} so often that no decision holds.`);
}

/** Nothing was asked of a host that cannot even be looked at: another one can be tried at once. */
async function lookFirst(host: Host): Promise<HostState> {
  try {
    return await host.lookAnew();
  } catch (error) {
    const hint = error instanceof SvcError ? error.hint : undefined;
    throw new PlaceRefusal('capacity', 'zone', `The host ${host.host.host} cannot be used: ${reasonOf(error)}.`, { hint, cause: error });
  }
}

function refuseUnfit(host: Host, { facts }: HostState): void {
  const unfit = whyUnfit(facts);
  if (unfit === undefined) return;
  const kind = facts.isWritable ? 'capacity' : 'unsupported';
  throw new PlaceRefusal(kind, 'zone', `The host ${host.host.host} cannot be used: ${unfit.why}.`, { hint: `${unfit.remedy}.` });
}

function decide(creation: Creation, state: HostState, { kind }: UsableIsolation): MachineRecord {
  const { host, name, key, offer, spec, clock, random } = creation;
  const { facts } = state;
  const ports = kind === 'none' ? allotPorts(spec, state, host.host.host, random) : { ports: [], ownPort: null };
  return {
    name,
    key,
    pool: host.pool,
    host: host.host.host,
    tags: spec.tags,
    isolation: kind,
    cookie: randomHex(32),
    ...allot(offer, state, host.host.host),
    ...ports,
    dir: `${facts.dir}/${name}`,
    socket: `${facts.home}/.svc/run/${name}.sock`,
    bootId: state.bootId,
    createdAt: clock.now(),
  };
}

async function question(
  { name }: Creation,
  { facts, revision }: HostState,
  { kind, outbound, node }: UsableIsolation,
  record: MachineRecord,
): Promise<Parameters<Host['ask']>[0]> {
  const { dir, socket, ownPort } = record;
  const proxySocket = socket.replace(/\.sock$/, '.out');
  const enter = await enterFiles({ isolation: kind, outbound, node: node ?? '', socket, proxySocket }, dir, facts);
  const files = [
    { name: 'machine.json', mode: '600', content: `${JSON.stringify(record)}\n` },
    { name: 'cookie', mode: '600', content: `${cookieVariable}=${record.cookie}` },
    ...enter,
  ];
  const argv = ['create', name, revision, String(ownPort ?? 0), String(Math.floor(minFreeBytes / 1_024))] as const;
  // Never given up half way: a connection that is cut does not say what the host made of it.
  return { argv, files, timeoutMs: createTimeoutMs };
}

function outcomeOf(reply: HostReply, record: MachineRecord, host: string): MachineRecord | SvcError | 'again' {
  switch (valueOf(reply, 'result') ?? 'failed') {
    case 'created':
      return record;
    case 'exists':
      return parseMachineRecord(valueOf(reply, 'machine') ?? '') ?? unreadable(host, record.name);
    case 'outdated':
    case 'port-busy':
      return 'again';
    case 'no-space': {
      const mb = Math.floor(Number(valueOf(reply, 'free_kb') ?? 0) / 1_024);
      return new PlaceRefusal('capacity', 'zone', `The host ${host} has ${mb} MB of disk left.`, { hint: 'Free space there.' });
    }
    default:
      return new PlaceRefusal(
        'capacity',
        'zone',
        `The host ${host} could not make a machine: ${valueOf(reply, 'why') ?? 'no reason given'}.`,
      );
  }
}

function unreadable(host: string, name: string): SvcError {
  return new SvcError('SVC_PLACE_FAILED', `The machine ${name} on the host ${host} has a record that this version cannot read.`);
}
