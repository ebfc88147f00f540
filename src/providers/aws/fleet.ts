import type { AwsConfig } from '../../domain/config.ts';
import { SshRemote } from '../../remote/ssh/index.ts';
import { SvcError } from '../../shared/errors.ts';
import type { MachineId, MachineStatus } from '../provider.ts';
import type { ProviderContext } from '../registry.ts';
import type { AwsAccount } from './account.ts';
import { guard } from './guard.ts';
import type { HomeFiles } from './home-identity.ts';
import { InstanceView, type InstanceSight } from './instance-view.ts';
import { existingRef, readMachineId, type InstanceRef } from './machine-id.ts';
import { hostOf, machineBaseDir, sshTarget } from './machine-remote.ts';
import { Readiness, type ReadinessCheck } from './readiness.ts';
import { RebalanceWatch } from './rebalance.ts';

/** How old an address may be when somebody logs in, ms: it changes with a stop and a start only, and we see those. */
const addressMs = 30_000;

/** What the machines are looked at and worked on by. */
export interface FleetParts {
  readonly context: Pick<ProviderContext, 'paths' | 'clock'>;
  readonly account: AwsAccount;
  readonly files: HomeFiles;
  /** Default: by logging in. */
  readonly isReady: ReadinessCheck | undefined;
}

/** The machines: how they are, by what AWS shows and what they answer themselves, and the way to work on each. */
export class Fleet {
  readonly view: InstanceView;
  readonly #parts: FleetParts;
  readonly #readiness: Readiness;
  readonly #rebalance: RebalanceWatch;
  readonly #remotes = new Map<MachineId, SshRemote>();

  constructor(parts: FleetParts) {
    const { clock } = parts.context;
    this.#parts = parts;
    this.view = new InstanceView(clock);
    this.#readiness = new Readiness(parts.isReady ?? ((id) => this.#logsIn(id)));
    this.#rebalance = new RebalanceWatch(clock);
  }

  /** How machines are; regions are asked at once, and one that does not answer hides only what was never seen. */
  async inspect(ids: readonly MachineId[], signal: AbortSignal | undefined): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const config = await this.#parts.account.config();
    const statuses = new Map<MachineId, MachineStatus>(ids.map((id) => [id, { state: 'gone', reason: 'unknown' }]));
    const regions = byRegion(ids);
    const looks = await Promise.allSettled(
      [...regions].map(async ([region, machines]) => {
        const sights = await this.#look(region, machines, signal);
        for (const [id, sight] of sights) statuses.set(id, this.#status(id, sight, config));
      }),
    );
    const failed = looks.find((look) => look.status === 'rejected');
    if (failed === undefined) return statuses;
    // A region that does not answer must not hide what the others say; of its own machines what was last seen is told, if anything was.
    const silent = [...regions.values()].flatMap((machines, index) => (looks[index]?.status === 'rejected' ? [...machines.keys()] : []));
    for (const id of silent) {
      const sight = this.view.lastSight(id, Number.POSITIVE_INFINITY);
      if (sight === undefined || looks.length === 1) throw failed.reason;
      statuses.set(id, this.#status(id, sight, config));
    }
    return statuses;
  }

  /** The way to work on a machine; the same one each time. */
  remote(id: MachineId): SshRemote {
    const ref = existingRef(id);
    const known = this.#remotes.get(id);
    if (known !== undefined) return known;
    const { context, account, files } = this.#parts;
    const target = async () => {
      const sight = this.view.lastSight(id, addressMs) ?? (await this.#look(ref.region, new Map([[id, ref]]), undefined)).get(id);
      if (sight === undefined) throw new SvcError('SVC_MACHINE_LOST', `The machine ${id} is gone.`);
      return sshTarget(ref, sight, files.identity(), (await account.config()).useInternalIps);
    };
    const { paths, clock } = context;
    const remote = new SshRemote({ target, baseDir: machineBaseDir(ref), enter: [], environment: {}, paths, clock });
    this.#remotes.set(id, remote);
    return remote;
  }

  /** It has to show again that one can log in, as after a stop. */
  mustAnswerAgain(id: MachineId): void {
    this.#readiness.forget(id);
  }

  /** It was removed: what is known of it, and connections to it, are of no use. */
  async forget(id: MachineId): Promise<void> {
    this.view.wasRemoved(id);
    this.#readiness.forget(id);
    this.#rebalance.forget(id);
    const remote = this.#remotes.get(id);
    this.#remotes.delete(id);
    try {
      await remote?.forget();
    } catch (error) {
      // Its address may not be known any more; then there is no connection either.
      if (!(error instanceof SvcError)) throw error;
    }
  }

  #look(
    region: string,
    machines: ReadonlyMap<MachineId, InstanceRef>,
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<MachineId, InstanceSight>> {
    const isBooting = (id: MachineId): boolean => {
      const state = this.view.lastSight(id, Number.POSITIVE_INFINITY)?.status.state;
      return state === 'booting' || (state === 'running' && !this.#readiness.isReady(id));
    };
    return guard(`show machines in ${region}`, signal, async () =>
      this.view.look(await this.#parts.account.ec2(region, signal), machines, isBooting),
    );
  }

  #status(id: MachineId, sight: InstanceSight, { useInternalIps }: AwsConfig): MachineStatus {
    if (sight.status.state !== 'running') return sight.status;
    // AWS says "running" when the processor does; whoever asks wants to log in.
    if (!this.#readiness.isReady(id)) return { state: 'booting' };
    const host = hostOf(sight, useInternalIps);
    const notice = sight.notice ?? (sight.isSpot ? this.#rebalance.noticeOf(id, () => this.remote(id)) : undefined);
    return { state: 'running', ...(notice !== undefined && { notice }), ...(host !== undefined && { host }) };
  }

  async #logsIn(id: MachineId): Promise<boolean> {
    try {
      await this.remote(id).connect();
      return true;
    } catch (error) {
      // Until it has the host key that was made for it, it shows another one; until it has a daemon, it shows nothing.
      if (error instanceof SvcError) return false;
      throw error;
    }
  }
}

/** Machines of each region; what is no id of this place is in none. */
function byRegion(ids: readonly MachineId[]): ReadonlyMap<string, ReadonlyMap<MachineId, InstanceRef>> {
  const regions = new Map<string, Map<MachineId, InstanceRef>>();
  for (const id of ids) {
    const ref = readMachineId(id);
    if (ref === undefined) continue;
    const machines = regions.get(ref.region) ?? new Map<MachineId, InstanceRef>();
    regions.set(ref.region, machines.set(id, ref));
  }
  return regions;
}
