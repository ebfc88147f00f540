import { join } from 'node:path';
import { isObject } from '../../shared/json.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { withHomeLock } from '../home-lock.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { Launched, VmMachine } from './driver.ts';
import { IntentLog, cloudDir } from '../intent-log.ts';
import { settlingMs } from './machine-view.ts';
import { untilFound } from './patience.ts';

const last = 'last';

/** A launch of one key. */
export interface KeyedLaunch {
  readonly key: string;
  readonly signal: AbortSignal | undefined;
  readonly find: () => Promise<readonly VmMachine[]>;
  readonly toLaunched: (machine: VmMachine) => Launched;
  /** Throws a `ProviderRefusal` when the cloud created nothing. Any other error leaves that open. */
  readonly send: (former: readonly VmMachine[]) => Promise<Launched>;
}

interface LaunchOnceParts {
  readonly paths: Pick<HomePaths, 'sshDir'>;
  readonly clock: Clock;
  readonly cloud: string;
  readonly paceMs: number;
}

/** Has the machine once it is known. */
interface LaunchIntent extends Partial<Launched> {
  readonly at: number;
}

/**
 * For clouds that create a second machine for a repeated request. A lock makes a home's processes launch in turn, each
 * with an intent on disk. A repeated launch first searches for the machine of a lost response.
 */
export class LaunchOnce {
  readonly #parts: LaunchOnceParts;
  /** By key. */
  readonly #launches: IntentLog<LaunchIntent>;
  /** When the last launch was sent, ms since the epoch. */
  readonly #pace: IntentLog<number>;

  constructor(parts: LaunchOnceParts) {
    this.#parts = parts;
    const dir = cloudDir(parts.paths, parts.cloud);
    this.#launches = new IntentLog({ dir: join(dir, 'launches'), read: readLaunch });
    this.#pace = new IntentLog({ dir: join(dir, 'pace'), read: (value) => (typeof value === 'number' ? value : undefined) });
  }

  /** Returns the key's machine, or launches one. */
  launch(launch: KeyedLaunch): Promise<Launched> {
    const { paths, cloud } = this.#parts;
    return withHomeLock(join(cloudDir(paths, cloud), 'launch.lock'), async () => {
      launch.signal?.throwIfAborted();
      const former = await launch.find();
      const found = living(former) ?? (await this.#unlisted(launch, former));
      if (found !== undefined) return 'status' in found ? launch.toLaunched(found) : found;
      return this.#send(launch, former);
    });
  }

  /** The machine was removed: its key may be launched again at once. */
  forget(instanceId: string): void {
    for (const key of this.#launches.names()) if (this.#launches.get(key)?.instanceId === instanceId) this.#launches.forget(key);
  }

  /** Finds the machine of an earlier launch that the cloud's lists may not show yet. */
  async #unlisted({ key, signal, find }: KeyedLaunch, former: readonly VmMachine[]): Promise<Launched | VmMachine | undefined> {
    const { clock } = this.#parts;
    const intent = this.#launches.get(key);
    if (intent === undefined || clock.now() - intent.at >= settlingMs) return undefined;
    const launched = launchedOf(intent);
    if (launched === undefined) return untilFound({ clock, signal }, async () => living(await find()));
    return former.some(({ instanceId }) => instanceId === launched.instanceId) ? undefined : launched;
  }

  async #send({ key, signal, find, toLaunched, send }: KeyedLaunch, former: readonly VmMachine[]): Promise<Launched> {
    const { clock } = this.#parts;
    await this.#awaitTurn(signal);
    this.#record(key, undefined);
    try {
      const launched = await send(former);
      this.#record(key, launched);
      return launched;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ProviderRefusal) {
        this.#launches.forget(key);
        throw error;
      }
      const made = await untilFound({ clock, signal }, async () => living(await find()));
      if (made === undefined) throw error;
      const launched = toLaunched(made);
      this.#record(key, launched);
      return launched;
    }
  }

  /** Clouds limit launches by account. The lock makes this the limit of the home. */
  async #awaitTurn(signal: AbortSignal | undefined): Promise<void> {
    const { clock, paceMs } = this.#parts;
    const lastAt = this.#pace.get(last) ?? 0;
    // Never longer than the pace, even when the system's clock was set back.
    const waitMs = Math.min(paceMs, lastAt + paceMs - clock.now());
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    signal?.throwIfAborted();
    if (paceMs > 0) this.#pace.record(last, clock.now());
  }

  #record(key: string, launched: Launched | undefined): void {
    this.#launches.record(key, { at: this.#parts.clock.now(), ...launched });
  }
}

function readLaunch(value: unknown): LaunchIntent | undefined {
  if (!isObject(value) || typeof value['at'] !== 'number') return undefined;
  const { at, instanceId, user } = value;
  return typeof instanceId === 'string' && typeof user === 'string' ? { at, instanceId, user } : { at };
}

function launchedOf({ instanceId, user }: LaunchIntent): Launched | undefined {
  return instanceId === undefined || user === undefined ? undefined : { instanceId, user };
}

function living(machines: readonly VmMachine[]): VmMachine | undefined {
  return machines.find(({ status }) => status.state !== 'gone');
}
