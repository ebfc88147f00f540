import { delayMs, type Backoff } from '../shared/backoff.ts';
import type { CancelTimer, Clock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import type { Random } from '../shared/random.ts';
import type { KubeApi, KubeEvent, KubeObject, KubeSelection, KubeWatchEnd } from './kube-api.ts';
import { isNotLeader } from './watch-stream.ts';

interface WatchedListDeps<T extends KubeObject = KubeObject> {
  readonly api: Pick<KubeApi, 'list' | 'watch'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Applied to each object. */
  readonly keep?: ((object: T) => T) | undefined;
  /** Called once per outage with the API server's message, and with undefined at its end. */
  readonly onTrouble?: (why: string | undefined) => void;
}

/** `before` undefined: the object is new; `after` undefined: it was removed. */
export interface ObjectChange<T extends KubeObject> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

const retry: Backoff = { firstMs: 200, longestMs: 5_000, jitter: 0.5 };
/** After so many failures in a row, list again: in a recreated server, the same version has another meaning. */
const failuresBeforeList = 2;
/**
 * A watch that was open for this time counts as working, even without events. A shorter one counts as a failure: a
 * server or proxy that ends each watch at once would otherwise cause retries without delay.
 */
const workingAfterMs = 2_000;
const tooShort: KubeWatchEnd = { how: 'failed', reason: 'watches end as soon as they begin' };

/** A collection kept current: one list, then watches. Changes during an outage are reported after it. */
export class WatchedList<T extends KubeObject> {
  /** Settles after the first list. Never fails: attempts go on without limit. */
  readonly synced: Promise<void>;
  /** Settles when the signal aborts. Fails with SVC_NOT_LEADER when this process may not read any more. */
  readonly ended: Promise<void>;
  readonly #path: string;
  readonly #selection: KubeSelection;
  readonly #deps: WatchedListDeps<T>;
  readonly #listeners: ((changes: readonly ObjectChange<T>[]) => void)[] = [];
  /** By namespace and name. */
  readonly #objects = new Map<string, T>();
  readonly #changes = new Map<string, ObjectChange<T>>();
  #version = '';
  #failures = 0;
  #isUnavailable = false;
  #lastSeenAt: number | undefined;
  #markSynced: () => void;

  constructor(path: string, selection: KubeSelection, deps: WatchedListDeps<T>) {
    this.#path = path;
    this.#selection = selection;
    this.#deps = deps;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#markSynced = resolve;
    this.ended = this.#run();
    // A caller that ignores `ended` must not cause an unhandled rejection.
    this.ended.catch(() => undefined);
  }

  /** Objects are replaced, never changed. */
  get items(): readonly T[] {
    return [...this.#objects.values()];
  }

  /** When the server last confirmed the state (monotonic ms); undefined before the first list. */
  get lastSeenAt(): number | undefined {
    return this.#lastSeenAt;
  }

  /** Calls `listener` once per read with all its changes. An object that changed twice appears once. */
  onChange(listener: (changes: readonly ObjectChange<T>[]) => void): void {
    this.#listeners.push(listener);
  }

  async #run(): Promise<void> {
    const { signal } = this.#deps;
    while (!signal.aborted) {
      const end = this.#version === '' ? await this.#list() : await this.#watch();
      // Only a working watch ends an outage. Otherwise a user who may list but not watch would list without delay.
      if (end === 'listed') continue;
      if (signal.aborted) return;
      await this.#handleEnd(end);
    }
  }

  async #handleEnd({ how, reason }: KubeWatchEnd): Promise<void> {
    if (how === 'ended') return;
    if (how === 'expired') {
      this.#version = '';
      // Delays endless lists against a server that rejects its own list's version at once.
      this.#failures += 1;
      if (this.#failures > 1) await this.#pause();
      return;
    }
    this.#failures += 1;
    if (this.#failures >= failuresBeforeList) {
      this.#version = '';
      this.#markUnavailable(reason ?? 'the connection was cut');
    }
    await this.#pause();
  }

  async #pause(): Promise<void> {
    const { clock, random, signal } = this.#deps;
    await clock.sleep(delayMs(retry, this.#failures, random), signal);
  }

  #markUnavailable(why: string): void {
    if (!this.#isUnavailable) this.#deps.onTrouble?.(why);
    this.#isUnavailable = true;
  }

  #markAvailable(): void {
    if (this.#isUnavailable) this.#deps.onTrouble?.(undefined);
    this.#isUnavailable = false;
    this.#failures = 0;
  }

  async #list(): Promise<KubeWatchEnd | 'listed'> {
    const { api, keep, signal } = this.#deps;
    try {
      const { items, resourceVersion } = await api.list<T>(this.#path, { ...this.#selection, keep, signal });
      if (signal.aborted) return { how: 'aborted' };
      if (resourceVersion === '') return { how: 'failed', reason: `what came as the list of ${this.#path} has no version` };
      const gone = new Set(this.#objects.keys());
      for (const item of items) {
        gone.delete(keyOf(item));
        if (this.#objects.get(keyOf(item))?.metadata.resourceVersion !== item.metadata.resourceVersion) this.#change(keyOf(item), item);
      }
      for (const key of gone) this.#change(key, undefined);
      this.#version = resourceVersion;
      this.#markSeen();
      this.#scheduleNotify();
      this.#markSynced();
      return 'listed';
    } catch (error) {
      if (isNotLeader(error)) throw error;
      return { how: signal.aborted ? 'aborted' : 'failed', reason: messageOf(error) };
    }
  }

  async #watch(): Promise<KubeWatchEnd> {
    const { api, clock, signal } = this.#deps;
    let cancel: CancelTimer | undefined;
    let isWorking = false;
    const markWorking = (): void => {
      isWorking = true;
      this.#markAvailable();
    };
    try {
      const end = await api.watch<T>(this.#path, {
        resourceVersion: this.#version,
        selection: this.#selection,
        signal,
        onOpen: () => {
          cancel = clock.after(workingAfterMs, markWorking);
        },
        onEvent: (event) => {
          markWorking();
          this.#onEvent(event);
        },
      });
      if (end.how !== 'ended') return end;
      if (!isWorking) return tooShort;
      this.#markSeen();
      return end;
    } finally {
      cancel?.();
    }
  }

  #onEvent({ type, object }: KubeEvent<T>): void {
    if (object.metadata.resourceVersion !== '') this.#version = object.metadata.resourceVersion;
    this.#markSeen();
    if (type === 'BOOKMARK') return;
    this.#change(keyOf(object), type === 'DELETED' ? undefined : (this.#deps.keep?.(object) ?? object));
    this.#scheduleNotify();
  }

  #change(key: string, after: T | undefined): void {
    const now = this.#objects.get(key);
    // A watch from an older version reports again what a list already reported.
    if (now === after) return;
    const before = this.#changes.has(key) ? this.#changes.get(key)?.before : now;
    if (after === undefined) this.#objects.delete(key);
    else this.#objects.set(key, after);
    if (before === undefined && after === undefined) this.#changes.delete(key);
    else this.#changes.set(key, { before, after });
  }

  /** A microtask: events of one read are reported together, and a listener's error is no error of the API server. */
  #scheduleNotify(): void {
    queueMicrotask(() => {
      if (this.#changes.size === 0) return;
      const changes = [...this.#changes.values()];
      this.#changes.clear();
      for (const listener of this.#listeners) listener(changes);
    });
  }

  #markSeen(): void {
    this.#lastSeenAt = this.#deps.clock.monotonic();
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
