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

/** Only entry of the log of launch times. */
const last = 'last';

/** One key's launch. */
export interface KeyedLaunch {
  readonly key: string;
  readonly signal: AbortSignal | undefined;
  /** All machines of the key that the cloud shows. */
  readonly find: () => Promise<readonly VmMachine[]>;
  readonly toLaunched: (machine: VmMachine) => Launched;
  /** Throws a `ProviderRefusal` when the cloud created nothing. After any other error, that is unknown. */
  readonly send: (former: readonly VmMachine[]) => Promise<Launched>;
}

interface LaunchOnceParts {
  readonly paths: Pick<HomePaths, 'sshDir'>;
  readonly clock: Clock;
  readonly cloud: string;
  readonly paceMs: number;
}

/** The time of a launch, and its machine once that is known. */
interface LaunchIntent extends Partial<Launched> {
  readonly at: number;
}

/**
 * For clouds that create a second machine for a repeated request. A lock makes all processes of a home launch in turn,
 * with an intent on disk before each request. A repeated launch first searches for the machine of a lost response.
 */
export class LaunchOnce {
  readonly #parts: LaunchOnceParts;
  /** By key. */
  readonly #launches: IntentLog<LaunchIntent>;
  /** Time of the last launch, ms since the epoch. */
  readonly #pace: IntentLog<number>;

  constructor(parts: LaunchOnceParts) {
    this.#parts = parts;
    const dir = cloudDir(parts.paths, parts.cloud);
    this.#launches = new IntentLog({ dir: join(dir, 'launches'), read: readLaunch });
    this.#pace = new IntentLog({ dir: join(dir, 'pace'), read: (value) => (typeof value === 'number' ? value : undefined) });
  }

  /** Returns the key's existing machine, or a new one. */
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

  /** After the machine's removal its key may be launched again at once. */
  forget(instanceId: string): void {
    for (const key of this.#launches.names()) if (this.#launches.get(key)?.instanceId === instanceId) this.#launches.forget(key);
  }

  /** The machine of an earlier launch that the cloud's lists may not show yet. */
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

  /** Clouds limit launches by account; the lock makes this the home's limit. */
  async #awaitTurn(signal: AbortSignal | undefined): Promise<void> {
    const { clock, paceMs } = this.#parts;
    const lastAt = this.#pace.get(last) ?? 0;
    // At most the pace, even if the system's clock was set back.
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
