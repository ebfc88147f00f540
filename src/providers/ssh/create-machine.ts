import { readFile } from 'node:fs/promises';
import { limitsConf } from '../../remote/isolation/limits.ts';
import { programPorts } from '../../shared/program-ports.ts';
import { programFile } from '../../shared/program-files.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import type { Random } from '../../shared/random.ts';
import type { Clock } from '../../shared/clock.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import { type Host, type HostState, reasonOf } from './host.ts';
import { minFreeBytes, whyUnfit } from './host-facts.ts';
import { type HostReply, valueOf } from './host-link.ts';
import { type UsableIsolation, enterFiles } from './isolation.ts';
import type { MachineInventory } from './machine-inventory.ts';
import { cookieVariable } from '../machine-environment.ts';
import { type MachineRecord, parseMachineRecord } from './machine-record.ts';
import { matchingGpus } from '../../domain/gpus.ts';
import { type HostShare, readShare, whyNoShare } from './host-share.ts';

interface Creation {
  readonly host: Host;
  readonly name: string;
  readonly key: string;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly inventory: MachineInventory;
  readonly clock: Clock;
  readonly random: Random;
  readonly isolation: (host: Host, state: HostState) => Promise<UsableIsolation>;
  readonly signal: AbortSignal | undefined;
}

/** ms. The SSH host waits up to 20 s for its lock, after the files were sent. */
const createTimeoutMs = 60_000;

/** Maximum number of decisions while other processes create machines there. */
const attempts = 20;

/**
 * Creates a machine, or finds the one with that name. Decides by the SSH host's last report. The SSH host rejects the
 * decision if another machine was created since; then the loop decides again.
 */
export async function createMachine(creation: Creation): Promise<MachineRecord> {
  const { host, name, inventory, signal } = creation;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const state = await pollFirst(host);
    const known = state.machines.find((machine) => machine.name === name);
    if (known !== undefined) return known;
    refuseUnfit(host, state);
    const isolation = await creation.isolation(host, state);
    signal?.throwIfAborted();
    const record = decide(creation, state, isolation);
    const entry = { pool: host.pool, host: host.config, name, tags: record.tags, askedAt: record.createdAt };
    // Comes first: from here on, an SSH host that stops answering may have the machine.
    inventory.put({ ...entry, record: undefined });
    const reply = await host.ask(await question(creation, state, isolation, record));
    const made = outcomeOf(reply, record, host.config.host);
    if (made === 'again') continue;
    if (made instanceof SvcError) {
      inventory.remove(host.pool, host.config.host, name);
      throw made;
    }
    inventory.put({ ...entry, tags: made.tags, record: made });
    return made;
  }
  throw new SvcError('SVC_PLACE_FAILED', `Machines are made on the host ${host.config.host} so often that no decision holds.`);
}

/** The search can try another SSH host at once, because nothing was requested yet. */
async function pollFirst(host: Host): Promise<HostState> {
  try {
    return await host.pollFresh();
  } catch (error) {
    const hint = error instanceof SvcError ? error.hint : undefined;
    throw new ProviderRefusal('capacity', 'zone', `The host ${host.config.host} cannot be used: ${reasonOf(error)}.`, {
      hint,
      cause: error,
    });
  }
}

function refuseUnfit(host: Host, { facts }: HostState): void {
  const unfit = whyUnfit(facts);
  if (unfit === undefined) return;
  const kind = facts.isWritable ? 'capacity' : 'unsupported';
  throw new ProviderRefusal(kind, 'zone', `The host ${host.config.host} cannot be used: ${unfit.why}.`, { hint: `${unfit.remedy}.` });
}

function decide(creation: Creation, state: HostState, { kind }: UsableIsolation): MachineRecord {
  const { host, name, key, offer, spec, clock, random } = creation;
  const { facts } = state;
  const ports = kind === 'none' ? allotPorts(spec, state, host.config.host, random) : { ports: [], ownPort: null };
  return {
    name,
    key,
    pool: host.pool,
    host: host.config.host,
    tags: spec.tags,
    isolation: kind,
    cookie: randomHex(32),
    limits: spec.limits ?? {},
    ...allot(offer, state, host.config.host),
    ...ports,
    dir: `${facts.dir}/${name}`,
    socket: `${facts.home}/.svc/run/${name}.sock`,
    bootId: state.bootId,
    createdAt: clock.now(),
  };
}

async function question(
  { name, host }: Creation,
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
    { name: 'limits.sh', mode: '600', content: await readFile(programFile('src/node/limits.sh'), 'utf8') },
    { name: 'limits.conf', mode: '600', content: limitsConf(record.limits ?? {}, host.config.maxProcesses) },
    ...enter,
  ];
  const argv = ['create', name, revision, String(ownPort ?? 0), String(Math.floor(minFreeBytes / 1_024))] as const;
  // No abort signal: after a cut connection the outcome on the SSH host is unknown.
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
      return new ProviderRefusal('capacity', 'zone', `The host ${host} has ${mb} MB of disk left.`, { hint: 'Free space there.' });
    }
    default:
      return new ProviderRefusal(
        'capacity',
        'zone',
        `The host ${host} could not make a machine: ${valueOf(reply, 'why') ?? 'no reason given'}.`,
      );
  }
}

function unreadable(host: string, name: string): SvcError {
  return new SvcError('SVC_PLACE_FAILED', `The machine ${name} on the host ${host} has a record that this version cannot read.`);
}

interface Allotment extends HostShare {
  /** Null where the SSH host has no GPUs. */
  readonly gpus: readonly number[] | null;
}

/** Throws a refusal for this SSH host if the resources are not free. */
function allot(offer: Offer, { facts, machines }: HostState, host: string): Allotment {
  const share = readShare(offer.instanceType) ?? { cpus: offer.cpus, memoryGb: offer.memoryGb };
  const why = whyNoShare(share, facts, machines);
  if (why !== undefined) throw new ProviderRefusal('capacity', 'zone', `The host ${host} ${why}.`);
  return { ...share, gpus: allotGpus(offer, { facts, machines }, host) };
}

function allotGpus({ accelerator }: Offer, { facts, machines }: Pick<HostState, 'facts' | 'machines'>, host: string): Allotment['gpus'] {
  if (facts.gpus.length === 0 && accelerator === undefined) return null;
  if (accelerator === undefined) return [];
  const taken = new Set(machines.flatMap((machine) => machine.gpus ?? []));
  const matching = matchingGpus(facts.gpus, { accelerator, acceleratorMemory: undefined });
  const free = matching.filter(({ index }) => !taken.has(index));
  if (free.length < accelerator.count) {
    const what = `${accelerator.count}x ${accelerator.name} are asked for; ${free.length} of ${matching.length} on ${host} are free.`;
    throw new ProviderRefusal('capacity', 'zone', what);
  }
  return free.slice(0, accelerator.count).map(({ index }) => index);
}

const { first: firstPort, count: portCount } = programPorts;

interface AllottedPorts {
  readonly ports: readonly number[];
  /** Instead of the port that its program serves. */
  readonly ownPort: number | null;
}

/**
 * For an SSH host that cannot isolate: the ports that the machine serves. If one is taken, a program that listens on
 * `$SVC_REPLICA_PORT` gets another port; any other program gets a refusal.
 */
export function allotPorts(
  spec: Pick<MachineSpec, 'ports' | 'followsPort'>,
  { machines }: HostState,
  host: string,
  random: Random,
): AllottedPorts {
  const taken = new Set(machines.flatMap(({ ports }) => ports));
  const clash = spec.ports.find((port) => taken.has(port));
  if (clash === undefined) return { ports: spec.ports, ownPort: null };
  if (spec.followsPort !== true) {
    const why = `Another machine has port ${clash} of the host ${host}, which cannot isolate machines from each other`;
    throw new ProviderRefusal('capacity', 'zone', `${why}; a program that listens on $SVC_REPLICA_PORT would get a port of its own.`);
  }
  for (;;) {
    const port = firstPort + Math.floor(random() * portCount);
    if (!taken.has(port)) return { ports: [port], ownPort: port };
  }
}
