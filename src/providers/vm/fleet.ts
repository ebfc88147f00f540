import { SshRemote, type SshTarget } from '../../remote/ssh/index.ts';
import { SvcError } from '../../shared/errors.ts';
import type { MachineId, MachineNotice, MachineStatus } from '../provider.ts';
import type { ProviderContext } from '../registry.ts';
import type { NoticeProbe, VmDriver, VmRef, VmSettings } from './driver.ts';
import type { HomeIdentities, HomeIdentity } from './home-identity.ts';
import { areaOf } from './inventory.ts';
import type { MachineIds } from './machine-id.ts';
import { type MachineSight, MachineView } from './machine-view.ts';
import { Readiness, type ReadinessCheck } from './readiness.ts';
import { Remembered } from './remembered.ts';
import { ownTags, readTags } from './tags.ts';
import type { Remote } from '../../remote/remote.ts';
import type { Clock } from '../../shared/clock.ts';

/** Maximum age of an address, ms. It changes only with a stop and a start, which this process sees. */
const addressMs = 30_000;

/** A machine that does not answer has its firewall checked at most this often, ms. */
const reopenEveryMs = 60_000;

interface FleetParts {
  readonly context: Pick<ProviderContext, 'paths' | 'clock'>;
  readonly driver: VmDriver;
  readonly ids: MachineIds;
  readonly identities: HomeIdentities;
  /** Undefined: by logging in. */
  readonly isReady: ReadinessCheck | undefined;
}

/** A cloud's machines: their status, and the `Remote` of each. */
export class Fleet {
  readonly view: MachineView;
  readonly #parts: FleetParts;
  readonly #readiness: Readiness;
  readonly #notices: NoticeWatch | undefined;
  readonly #remotes = new Map<MachineId, SshRemote>();
  readonly #reopened: Remembered<boolean>;

  constructor(parts: FleetParts) {
    const { context, driver } = parts;
    this.#parts = parts;
    this.view = new MachineView(context.clock, driver.title);
    this.#readiness = new Readiness(parts.isReady ?? ((id) => this.#logsIn(id)));
    this.#reopened = new Remembered(context.clock, reopenEveryMs);
    this.#notices = driver.noticeProbe === undefined ? undefined : new NoticeWatch(context.clock, driver.noticeProbe);
  }

  /** A region that does not answer hides only machines that were never seen. */
  async inspect(ids: readonly MachineId[], signal: AbortSignal | undefined): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const { driver } = this.#parts;
    const settings = await driver.settings();
    const statuses = new Map<MachineId, MachineStatus>(ids.map((id) => [id, { state: 'gone', reason: 'unknown' }]));
    const regions = this.#parts.ids.byRegion(ids, ({ region }) => areaOf(driver, region));
    const results = await Promise.allSettled(
      [...regions].map(async ([region, machines]) => {
        const sights = await this.#inspectRegion(region, machines, signal);
        for (const [id, sight] of sights) statuses.set(id, this.#status(id, sight, settings));
      }),
    );
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return statuses;
    // Machines of a silent region keep their last status.
    const silent = [...regions.values()].flatMap((machines, index) => (results[index]?.status === 'rejected' ? [...machines.keys()] : []));
    for (const id of silent) {
      const sight = this.view.lastSight(id, Number.POSITIVE_INFINITY);
      if (sight === undefined || results.length === 1) throw failed.reason;
      statuses.set(id, this.#status(id, sight, settings));
    }
    return statuses;
  }

  remote(id: MachineId): SshRemote {
    const { context, driver, ids, identities } = this.#parts;
    const ref = ids.existing(id);
    const known = this.#remotes.get(id);
    if (known !== undefined) return known;
    const target = async (): Promise<SshTarget> => {
      const area = areaOf(driver, ref.region);
      const sight = this.view.lastSight(id, addressMs) ?? (await this.#inspectRegion(area, new Map([[id, ref]]), undefined)).get(id);
      if (sight === undefined) throw new SvcError('SVC_MACHINE_LOST', `The machine ${id} is gone.`);
      return sshTarget(driver, { ref, sight, identity: identities.identity(), settings: await driver.settings() });
    };
    const { paths, clock } = context;
    const repair = (): Promise<boolean> => this.#reopen(id, ref);
    const remote = new SshRemote({ target, repair, baseDir: machineBaseDir(ref), enter: [], environment: {}, paths, clock });
    this.#remotes.set(id, remote);
    return remote;
  }

  /** The machine must pass the login check again, as after a stop. */
  mustAnswerAgain(id: MachineId): void {
    this.#readiness.forget(id);
  }

  async forget(id: MachineId): Promise<void> {
    this.view.wasRemoved(id);
    this.#readiness.forget(id);
    this.#notices?.forget(id);
    const remote = this.#remotes.get(id);
    this.#remotes.delete(id);
    try {
      await remote?.forget();
    } catch (error) {
      // Without an address there is no connection.
      if (!(error instanceof SvcError)) throw error;
    }
  }

  #inspectRegion(
    region: string,
    machines: ReadonlyMap<MachineId, VmRef>,
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<MachineId, MachineSight>> {
    const { driver } = this.#parts;
    const isBooting = (id: MachineId): boolean => {
      const state = this.view.lastSight(id, Number.POSITIVE_INFINITY)?.status.state;
      return state === 'booting' || (state === 'running' && !this.#readiness.isReady(id));
    };
    return driver.errors.guard(`show machines in ${region}`, signal, () =>
      this.view.inspect((ids) => driver.list(region, { ids }, signal), machines, isBooting),
    );
  }

  #status(id: MachineId, sight: MachineSight, settings: VmSettings): MachineStatus {
    if (sight.status.state !== 'running') return sight.status;
    // Callers need a login, which works later than the cloud reports "running".
    if (!this.#readiness.isReady(id)) return { state: 'booting' };
    const host = hostOf(sight, settings);
    const notice = sight.notice ?? (sight.isSpot ? this.#notices?.noticeOf(id, () => this.remote(id)) : undefined);
    return { state: 'running', ...(notice !== undefined && { notice }), ...(host !== undefined && { host }) };
  }

  /** This machine's address may have changed, as of a laptop. Machines with a common firewall share the answer. */
  async #reopen(id: MachineId, { region }: VmRef): Promise<boolean> {
    const { driver, identities } = this.#parts;
    const tags = this.view.lastSight(id, Number.POSITIVE_INFINITY)?.tags ?? {};
    const owner = readTags(tags, driver.traits.labels)[ownTags.owner];
    // The launch has just opened it, and a booting machine does not answer for a while.
    if (owner === undefined || this.view.isJustMade(id)) return false;
    const home = identities.identity().id;
    // A failure is remembered too. The caller reports that the machine does not answer.
    const reopen = async (): Promise<boolean> => (await driver.reopenSsh?.(region, { home, owner }).catch(() => false)) ?? false;
    return this.#reopened.get(`${region} ${owner}`, reopen);
  }

  async #logsIn(id: MachineId): Promise<boolean> {
    try {
      await this.remote(id).connect();
      return true;
    } catch (error) {
      // Either its SSH daemon does not run yet, or cloud-init has not installed the host key.
      if (error instanceof SvcError) return false;
      throw error;
    }
  }
}

function machineBaseDir({ user }: Pick<VmRef, 'user'>): string {
  return user === 'root' ? '/root/svc' : `/home/${user}/svc`;
}

function hostOf(sight: MachineSight, { useInternalIps }: VmSettings): string | undefined {
  return useInternalIps ? sight.privateHost : sight.publicHost;
}

interface Login {
  readonly ref: VmRef;
  readonly sight: MachineSight;
  readonly identity: HomeIdentity;
  readonly settings: VmSettings;
}

/** How to log in to a machine. Throws SVC_MACHINE_LOST when it is gone, and SVC_SSH while it has no address. */
function sshTarget(driver: Pick<VmDriver, 'name' | 'traits'>, { ref, sight, identity, settings }: Login): SshTarget {
  const name = `${ref.instanceId} in ${ref.region}`;
  if (sight.status.state === 'gone') throw new SvcError('SVC_MACHINE_LOST', `The machine ${name} is gone (${sight.status.reason}).`);
  const host = hostOf(sight, settings);
  if (host === undefined) {
    throw new SvcError('SVC_SSH', `The machine ${name} has no ${settings.useInternalIps ? 'private' : 'public'} address.`, {
      hint: `If it keeps having none: its subnet gives none; set ${driver.name}.use_internal_ips in config.yaml where private ones can be reached.`,
    });
  }
  const key = readTags(sight.tags, driver.traits.labels)[ownTags.key] ?? '';
  const [type, publicKey] = identity.hostKey(key).publicLine.split(' ');
  return { name, host, user: ref.user, identityFile: identity.keyFile, userConfig: false, hostKeys: [`${type} ${publicKey}`] };
}

const askTimeoutMs = 15_000;

interface Asked {
  readonly at: number;
  readonly notice: MachineNotice | undefined;
}

/** Polls spot machines over SSH for notices that only they get. Polls run in the background. */
export class NoticeWatch {
  readonly #clock: Clock;
  readonly #probe: NoticeProbe;
  readonly #asked = new Map<MachineId, Asked>();
  readonly #asking = new Set<MachineId>();

  constructor(clock: Clock, probe: NoticeProbe) {
    this.#clock = clock;
    this.#probe = probe;
  }

  noticeOf(id: MachineId, remote: () => Pick<Remote, 'exec'>): MachineNotice | undefined {
    const known = this.#asked.get(id);
    const isOld = known === undefined || this.#clock.monotonic() - known.at >= this.#probe.everyMs;
    // A notice stays: no cloud withdraws it.
    if (isOld && known?.notice === undefined && !this.#asking.has(id)) void this.#ask(id, remote());
    return known?.notice;
  }

  forget(id: MachineId): void {
    this.#asked.delete(id);
  }

  /** Never throws: a machine that does not answer is polled again later. */
  async #ask(id: MachineId, remote: Pick<Remote, 'exec'>): Promise<void> {
    this.#asking.add(id);
    const { script, args } = this.#probe;
    let notice: MachineNotice | undefined;
    try {
      const { stdout } = await remote.exec(['sh', '-c', script, 'sh', ...args], { timeoutMs: askTimeoutMs });
      notice = this.#probe.parse(stdout);
    } catch {
      // Readiness checks and health probes find the machine's trouble.
    }
    this.#asking.delete(id);
    this.#asked.set(id, { at: this.#clock.monotonic(), notice });
  }
}
