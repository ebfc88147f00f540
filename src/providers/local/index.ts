import { createHash } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { availableParallelism, machine as processor, totalmem, userInfo } from 'node:os';
import { createServer } from 'node:net';
import type { LocalConfig, LocalRegion } from '../../domain/config.ts';
import { type Gpu, describeGpus, matchingGpus } from '../../domain/gpus.ts';
import type { Resources } from '../../domain/task.ts';
import { LocalRemote } from '../../remote/local.ts';
import type { Remote } from '../../remote/remote.ts';
import { programPorts } from '../../shared/program-ports.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import {
  hasTags,
  type CallOptions,
  type ListedMachine,
  type MachineId,
  type MachineSpec,
  type MachineStatus,
  type Offer,
  type OfferList,
  type Provider,
  type ProviderCheck,
  isMachineId,
} from '../provider.ts';
import type { ProviderContext } from '../registry.ts';
import { findGpus, type LocalFacts, localOffers } from './offers.ts';
import { type IsolationChoice, type IsolationContext, chooseIsolation, findLimits, hasPerl } from './isolation.ts';
import { machineEnvironment } from '../machine-environment.ts';
import { withHomeLock } from '../home-lock.ts';
import { type MachineRecord, MachineStore } from './machine-store.ts';
import { reclaimOf, refuseByZone, runningUntil } from './spot-zones.ts';
import { endProcesses, tearDown } from './teardown.ts';
import { isolationNames, outboundNames } from '../../remote/isolation/kinds.ts';
import { describeFilter, filterRemedies } from '../../remote/isolation/filter-report.ts';
import { describeLimits, limitsRemedies } from '../../remote/isolation/limits.ts';
import type { Random } from '../../shared/random.ts';
import { bytesPerGb } from '../../shared/units.ts';

/** With less free space, a program that logs, or a copy of a workdir, would fill the disk. */
const minFreeBytes = 100 * 1_048_576;

/** Few enough for socket paths, enough to avoid collisions. */
const idDigits = 16;

/** This machine as a provider: its machines are folders whose programs the kernel isolates. */
export class LocalProvider implements Provider {
  readonly name = 'local';
  readonly capabilities = { spot: true, stopResume: false, customImages: false, openPorts: true, multiNode: false, gpus: true };
  readonly #context: ProviderContext;
  readonly #machines: MachineStore;
  readonly #peers: readonly MachineStore[];

  constructor(context: ProviderContext) {
    this.#context = context;
    this.#machines = new MachineStore(context.paths);
    this.#peers = (context.peerHomes ?? []).map((paths) => new MachineStore(paths));
  }

  async check(): Promise<ProviderCheck> {
    return checkLocal(this.#context, await this.#settings());
  }

  async offers(resources: Resources, options: CallOptions): Promise<OfferList> {
    options.signal?.throwIfAborted();
    const settings = await this.#settings();
    return localOffers(resources, await this.#facts(settings), settings, this.#all());
  }

  async create(offer: Offer, spec: MachineSpec, key: string, options: CallOptions): Promise<MachineId> {
    const id = idOf(key);
    const { clock, random, paths } = this.#context;
    const settings = await this.#settings();
    const isolation = await chooseIsolation(this.#context, settings.isolation);
    const gpus = await findGpus(clock, settings.gpus);
    options.signal?.throwIfAborted();
    return withHomeLock(this.#machines.lockFile, async () => {
      if (this.#homeOf(id).read(id) !== undefined) return id;
      const others = this.#all().filter((machine) => !machine.preempted);
      refuseByRegion(settings.regions, offer.region, others);
      refuseByZone(settings.spotZones, offer, others);
      refuseWithoutSpace(paths.localDir);
      const record: MachineRecord = {
        id,
        key,
        region: offer.region,
        ...(offer.spot && offer.zone !== undefined && { zone: offer.zone }),
        tags: spec.tags,
        isolation: isolation.kind,
        outbound: isolation.outbound,
        cookie: randomHex(32),
        limits: spec.limits ?? {},
        gpus: allotGpus(gpus, offer, others),
        ownPort:
          isolation.kind === 'none'
            ? await chooseOwnPort(
                random,
                others.flatMap(({ ownPort }) => ownPort ?? []),
              )
            : null,
        createdAt: clock.now(),
        preempted: false,
      };
      options.signal?.throwIfAborted();
      this.#context.fence.check();
      this.#machines.add(record, settings.maxProcesses);
      return id;
    });
  }

  async inspect(ids: readonly MachineId[], options: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const settings = await this.#settings();
    const statuses = new Map<MachineId, MachineStatus>();
    for (const id of ids) statuses.set(id, await this.#inspectOne(id, settings, options));
    return statuses;
  }

  async destroy(id: MachineId, options: CallOptions): Promise<void> {
    const home = this.#homeOf(id);
    await tearDown({ files: home.files(id), record: home.read(id), clock: this.#context.clock, signal: options.signal });
  }

  async list(tags: Readonly<Record<string, string>>, options: CallOptions): Promise<readonly ListedMachine[]> {
    options.signal?.throwIfAborted();
    return this.#all()
      .filter((machine) => hasTags(machine.tags, tags))
      .map((machine) => ({ id: machine.id, tags: machine.tags }));
  }

  remote(id: MachineId): Remote {
    const home = this.#homeOf(id);
    const record = home.read(id);
    const files = home.files(id);
    const ownPort = record?.ownPort ?? null;
    return new LocalRemote({
      baseDir: files.base,
      enter: record === undefined || record.isolation === 'none' ? [] : ['sh', files.enter],
      limitsDir: record?.limits === undefined ? undefined : files.dir,
      environment: record === undefined ? {} : machineEnvironment(record),
      address: (port) =>
        ownPort === null ? { kind: 'unix', path: files.socket, port } : { kind: 'tcp', host: '127.0.0.1', port: ownPort },
      clock: this.#context.clock,
    });
  }

  release(): Promise<void> {
    return Promise.resolve();
  }

  async #inspectOne(id: MachineId, { regions, spotZones }: LocalConfig, { signal }: CallOptions): Promise<MachineStatus> {
    const home = this.#homeOf(id);
    const record = home.read(id);
    if (record === undefined) return { state: 'gone', reason: 'unknown' };
    if (record.preempted) return { state: 'gone', reason: 'preempted' };
    if (regions.find(({ name }) => name === record.region)?.state !== 'lost') {
      const reclaim = reclaimOf(record, spotZones, record.zone === undefined ? [] : this.#all(), this.#context.clock.now());
      const { ends, reclaimedAt } = reclaim;
      if (reclaimedAt !== undefined && (ends || reclaimedAt !== record.reclaimedAt) && home.read(id) !== undefined)
        home.replace({ ...record, reclaimedAt, preempted: ends });
      // Its removal ends the processes. If they ended before this answer, that would look like a fault of the program.
      return ends ? { state: 'gone', reason: 'preempted' } : runningUntil(reclaim);
    }
    await endProcesses({ files: home.files(id), record, clock: this.#context.clock, signal });
    // If another process has removed the machine, `replace` must not recreate its folder.
    if (home.read(id) !== undefined) home.replace({ ...record, preempted: true });
    return { state: 'gone', reason: 'preempted' };
  }

  #all(): readonly MachineRecord[] {
    return [this.#machines, ...this.#peers].flatMap((home) => home.list());
  }

  /** The home that has a machine; this one when none has it. */
  #homeOf(id: MachineId): MachineStore {
    return this.#peers.find((peer) => peer.read(id) !== undefined) ?? this.#machines;
  }

  async #settings(): Promise<LocalConfig> {
    return (await this.#context.config()).local;
  }

  async #facts(settings: LocalConfig): Promise<LocalFacts> {
    // Inside a container the memory limit can be lower than the computer's memory.
    const bytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
    const memoryGb = Math.round((bytes / bytesPerGb) * 10) / 10;
    return { cpus: availableParallelism(), memoryGb, gpus: await findGpus(this.#context.clock, settings.gpus) };
  }
}

/** The same key always gives the same id: this makes a repeated create harmless. */
function idOf(key: string): MachineId {
  const id = createHash('sha256').update(key).digest('hex').slice(0, idDigits);
  if (!isMachineId(id)) throw new SvcError('SVC_INTERNAL', 'A digest was empty.');
  return id;
}

function refuseByRegion(regions: readonly LocalRegion[], name: string, machines: readonly MachineRecord[]): void {
  const region = regions.find((one) => one.name === name);
  if (region === undefined) throw new SvcError('SVC_CAPACITY', `There is no region '${name}' on this computer any more.`);
  const code = region.refuseWith === 'quota' ? 'SVC_QUOTA' : 'SVC_CAPACITY';
  if (region.state !== 'up')
    throw new SvcError(code, `The region '${name}' gives no machines: its state is '${region.state}' (local.regions).`);
  const count = machines.filter((machine) => machine.region === name).length;
  if (region.maxMachines !== undefined && count >= region.maxMachines) {
    throw new SvcError(code, `The region '${name}' has ${count} of ${region.maxMachines} machines (local.regions).`);
  }
}

function refuseWithoutSpace(dir: string): void {
  const { bavail, bsize } = statfsSync(dir);
  const free = bavail * bsize;
  if (free < minFreeBytes) throw new SvcError('SVC_NO_SPACE', `There are ${Math.floor(free / 1_048_576)} MB left on the disk of ${dir}.`);
}

/** Null where this computer has no GPUs. */
function allotGpus(gpus: readonly Gpu[], { accelerator }: Offer, machines: readonly MachineRecord[]): readonly number[] | null {
  if (gpus.length === 0) return null;
  if (accelerator === undefined) return [];
  const taken = new Set(machines.flatMap((machine) => machine.gpus ?? []));
  const matching = matchingGpus(gpus, { accelerator, acceleratorMemory: undefined });
  const free = matching.filter(({ index }) => !taken.has(index));
  if (free.length < accelerator.count) {
    throw new SvcError(
      'SVC_CAPACITY',
      `${accelerator.count}x ${accelerator.name} are asked for; ${free.length} of ${matching.length} on this computer are free.`,
    );
  }
  return free.slice(0, accelerator.count).map(({ index }) => index);
}

async function checkLocal(context: IsolationContext, settings: LocalConfig): Promise<ProviderCheck> {
  const gpus = await findGpus(context.clock, settings.gpus);
  const regions = settings.regions.map(({ name, state }) => (state === 'up' ? name : `${name} (${state})`)).join(', ');
  const facts: ProviderCheck['details'] = [
    ['GPUs', describeGpus(gpus)],
    ['regions', regions],
    ...(settings.spotZones.length > 0 ? [['spot zones', describeZones(settings)] as const] : []),
  ];
  const limits = await findLimits(context);
  const user = userInfo().username;
  let choice: IsolationChoice;
  try {
    choice = await chooseIsolation(context, settings.isolation);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return { enabled: false, summary: error.message, remedies: [error.hint], details: facts, sharedPorts: undefined };
  }
  const filter = { isolation: choice.kind, arch: processor(), hasPerl: await hasPerl(context) };
  return {
    enabled: true,
    summary: `this computer; isolation: ${choice.kind}${choice.isForced ? ' (as set)' : ''}, outbound: ${choice.outbound}`,
    remedies: [...choice.remedies, ...filterRemedies(filter), ...limitsRemedies(limits, user)],
    details: [
      ['isolation', isolationNames[choice.kind]],
      ...choice.refused.map(([name, why]) => [`not ${name}`, why] as const),
      ['outbound', outboundNames[choice.outbound]],
      ['system call filter', describeFilter(filter)],
      ['limits', describeLimits(limits, user, choice.kind)],
      ...facts,
    ],
    sharedPorts: choice.kind === 'none' ? whyNotIsolated(choice) : undefined,
  };
}

function describeZones({ spotZones }: LocalConfig): string {
  return spotZones.map(({ name, room }) => `${name} (room for ${room})`).join(', ');
}

function whyNotIsolated({ isForced, refused }: IsolationChoice): string {
  const [[, why] = []] = refused;
  return isForced || why === undefined ? 'isolation is turned off on this computer' : `this computer cannot isolate them (${why})`;
}

const { first: firstPort, count: portCount } = programPorts;
const attempts = 100;

/** Another process may take the port before the program does; then the program reports that. */
async function chooseOwnPort(random: Random, taken: readonly number[]): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const port = firstPort + Math.floor(random() * portCount);
    if (!taken.includes(port) && (await isFree(port))) return port;
  }
  throw new SvcError('SVC_CAPACITY', `There is no free port between ${firstPort} and ${firstPort + portCount - 1} on this computer.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
