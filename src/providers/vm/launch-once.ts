import { join } from 'node:path';
import { isObject } from '../../shared/is-object.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { withHomeLock } from '../home-lock.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { Launched, VmMachine } from './driver.ts';
import { cloudDir, IntentLog } from './intent-log.ts';
import { settlingMs } from './machine-view.ts';
import { untilFound } from './patience.ts';

/** Intents of these kinds: launches by their key, and when the last one was sent. */
const launches = 'launches';
const pace = 'pace';
const lastLaunch = 'last';

/** A launch of one key. */
export interface KeyedLaunch {
  readonly key: string;
  readonly signal: AbortSignal | undefined;
  /** All machines of the key that the cloud shows. */
  readonly find: () => Promise<readonly VmMachine[]>;
  readonly toLaunched: (machine: VmMachine) => Launched;
  /** Sends the request. Throws a `ProviderRefusal` when the cloud created nothing; any other error leaves that open. */
  readonly send: (former: readonly VmMachine[]) => Promise<Launched>;
}

/** How launches of a cloud are paced and recorded. */
interface LaunchOnceParts {
  readonly paths: Pick<HomePaths, 'sshDir'>;
  readonly clock: Clock;
  readonly cloud: string;
  readonly paceMs: number;
}

/** The stored record of a launch: its time, and the resulting machine, once it is known. */
interface LaunchIntent {
  readonly at: number;
  readonly launched: Launched | undefined;
}

/**
 * Launches for clouds that create a second machine for a repeated request. One lock makes all processes of a home
 * launch in turn. The intent is on disk before the request is sent. A repeated launch with the key first searches for
 * the machine of a request whose response was lost.
 */
export class LaunchOnce {
  readonly #parts: LaunchOnceParts;
  readonly #intents: IntentLog;

  constructor(parts: LaunchOnceParts) {
    this.#parts = parts;
    this.#intents = new IntentLog(parts.paths, parts.cloud);
  }

  /** The machine of the key: the existing one, or a new one. */
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
    for (const key of this.#intents.names(launches))
      if (this.#intentOf(key)?.launched?.instanceId === instanceId) this.#intents.forget(launches, key);
  }

  /** The machine of an earlier launch of the key that the cloud's lists may not show yet. */
  async #unlisted({ key, signal, find }: KeyedLaunch, former: readonly VmMachine[]): Promise<Launched | VmMachine | undefined> {
    const { clock } = this.#parts;
    const intent = this.#intentOf(key);
    if (intent === undefined || clock.now() - intent.at >= settlingMs) return undefined;
    const { launched } = intent;
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
        this.#intents.forget(launches, key);
        throw error;
      }
      // The cloud may have processed the request.
      const made = await untilFound({ clock, signal }, async () => living(await find()));
      if (made === undefined) throw error;
      const launched = toLaunched(made);
      this.#record(key, launched);
      return launched;
    }
  }

  /** Clouds limit launches by account; the lock makes this the limit of the home. */
  async #awaitTurn(signal: AbortSignal | undefined): Promise<void> {
    const { clock, paceMs } = this.#parts;
    const last = Number(this.#intents.content(pace, lastLaunch) ?? 0);
    // Never longer than the pace, even when the system's clock was set back.
    const waitMs = Math.min(paceMs, last + paceMs - clock.now());
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    signal?.throwIfAborted();
    if (paceMs > 0) this.#intents.record(pace, lastLaunch, String(clock.now()));
  }

  #record(key: string, launched: Launched | undefined): void {
    this.#intents.record(launches, key, JSON.stringify({ at: this.#parts.clock.now(), ...launched }));
  }

  #intentOf(key: string): LaunchIntent | undefined {
    const value = parseJson(this.#intents.content(launches, key) ?? '');
    if (!isObject(value) || typeof value['at'] !== 'number') return undefined;
    const { at, instanceId, user } = value;
    return { at, launched: typeof instanceId === 'string' && typeof user === 'string' ? { instanceId, user } : undefined };
  }
}

function living(machines: readonly VmMachine[]): VmMachine | undefined {
  return machines.find(({ status }) => status.state !== 'gone');
}
