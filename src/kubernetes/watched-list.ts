import type { CancelTimer, Clock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import type { Random } from '../shared/random.ts';
import type { KubeApi, KubeEvent, KubeObject, KubeSelection, KubeWatchEnd } from './kube-api.ts';
import { isNotLeader } from './watch-stream.ts';

/** What a collection is to be kept with. */
export interface WatchedListDeps<T extends KubeObject = KubeObject> {
  readonly api: Pick<KubeApi, 'list' | 'watch'>;
  readonly clock: Clock;
  readonly random: Random;
  /** Ends it all. */
  readonly signal: AbortSignal;
  /** What of each object is kept; all of it when absent. */
  readonly keep?: ((object: T) => T) | undefined;
  /** Told when the API server went away, once per outage, with its words; and when it is back, with undefined. */
  readonly onTrouble?: (why: string | undefined) => void;
}

/** A change of one object: `before` is undefined when it is new, `after` when it is gone. */
export interface ObjectChange<T extends KubeObject> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

const firstPauseMs = 100;
const longestPauseMs = 5_000;
/** Failures in a row after which the collection is listed anew: the server may have been set up again, with versions that mean something else. */
const failuresBeforeList = 2;
/**
 * A watch that was not refused for that long holds, even when nothing happens in the cluster. One that ends sooner without a word is no ordinary end: a
 * server or a proxy that ends each at once would be asked without a pause.
 */
const settledMs = 2_000;
const tooShort: KubeWatchEnd = { how: 'failed', reason: 'watches end as soon as they begin' };

/**
 * A collection as the API server has it, kept up for ever: listed once, then watched from there. After an outage what happened meanwhile is told as
 * if it had been watched.
 */
export class WatchedList<T extends KubeObject> {
  /** Settles when the collection is known for the first time; never fails, as it is tried for ever. */
  readonly synced: Promise<void>;
  /** Settles when the signal has ended it. Fails with SVC_NOT_LEADER when this process may not look any more. */
  readonly ended: Promise<void>;
  readonly #path: string;
  readonly #selection: KubeSelection;
  readonly #deps: WatchedListDeps<T>;
  readonly #listeners = new Set<(changes: readonly ObjectChange<T>[]) => void>();
  /** By namespace and name. */
  readonly #objects = new Map<string, T>();
  readonly #changes = new Map<string, ObjectChange<T>>();
  #version = '';
  #failures = 0;
  #isTrouble = false;
  #isSynced = false;
  #isTelling = false;
  #heardAt: number | undefined;
  #markSynced: () => void;

  constructor(path: string, selection: KubeSelection, deps: WatchedListDeps<T>) {
    this.#path = path;
    this.#selection = selection;
    this.#deps = deps;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#markSynced = resolve;
    this.ended = this.#run();
    // Whoever does not wait for the end is no fault.
    this.ended.catch(() => undefined);
  }

  /** As of now; in no order. Objects are never changed, only replaced. */
  get items(): readonly T[] {
    return [...this.#objects.values()];
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** When the server last confirmed what is known (monotonic ms); undefined before the first time. */
  get heardAt(): number | undefined {
    return this.#heardAt;
  }

  /** Looks one up. */
  find(name: string, namespace?: string): T | undefined {
    return namespace === undefined ? this.items.find((item) => item.metadata.name === name) : this.#objects.get(`${namespace}/${name}`);
  }

  /** Calls back once for all changes that came at one moment; an object that changed twice is told once. Gives a function that ends it. */
  onChange(listener: (changes: readonly ObjectChange<T>[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #run(): Promise<void> {
    const { signal } = this.#deps;
    while (!signal.aborted) {
      const end = this.#version === '' ? await this.#list() : await this.#watch();
      // Only a watch shows that all is well again: who may list and not watch would list without a pause.
      if (end === 'listed') continue;
      if (signal.aborted) return;
      await this.#goOnAfter(end);
    }
  }

  async #goOnAfter({ how, reason }: KubeWatchEnd): Promise<void> {
    if (how === 'ended') return;
    if (how === 'expired') {
      this.#version = '';
      // A server that answers each list with a version that it does not know the next moment is not asked without end.
      this.#failures += 1;
      if (this.#failures > 1) await this.#pause();
      return;
    }
    this.#failures += 1;
    if (this.#failures >= failuresBeforeList) {
      this.#version = '';
      this.#isAway(reason ?? 'the connection was cut');
    }
    await this.#pause();
  }

  async #pause(): Promise<void> {
    const { clock, random, signal } = this.#deps;
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures, 10));
    await clock.sleep(pauseMs * (0.5 + random() / 2), signal);
  }

  #isAway(why: string): void {
    if (!this.#isTrouble) this.#deps.onTrouble?.(why);
    this.#isTrouble = true;
  }

  #isBack(): void {
    if (this.#isTrouble) this.#deps.onTrouble?.(undefined);
    this.#isTrouble = false;
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
        if (this.#objects.get(keyOf(item))?.metadata.resourceVersion !== item.metadata.resourceVersion) this.#set(item);
      }
      for (const key of gone) this.#delete(key);
      this.#version = resourceVersion;
      this.#heard();
      this.#tellSoon();
      this.#isSynced = true;
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
    let holds = false;
    const goesWell = (): void => {
      holds = true;
      this.#isBack();
    };
    try {
      const end = await api.watch<T>(this.#path, {
        resourceVersion: this.#version,
        selection: this.#selection,
        signal,
        onOpen: () => {
          cancel = clock.after(settledMs, goesWell);
        },
        onEvent: (event) => {
          goesWell();
          this.#onEvent(event);
        },
      });
      if (end.how !== 'ended') return end;
      if (!holds) return tooShort;
      this.#heard();
      return end;
    } finally {
      cancel?.();
    }
  }

  #onEvent({ type, object }: KubeEvent<T>): void {
    if (object.metadata.resourceVersion !== '') this.#version = object.metadata.resourceVersion;
    this.#heard();
    if (type === 'BOOKMARK') return;
    if (type === 'DELETED') this.#delete(keyOf(object));
    else this.#set(this.#deps.keep?.(object) ?? object);
    this.#tellSoon();
  }

  #set(object: T): void {
    this.#change(keyOf(object), object);
  }

  #delete(key: string): void {
    this.#change(key, undefined);
  }

  #change(key: string, after: T | undefined): void {
    const now = this.#objects.get(key);
    // A list may have told already what a watch from an older version tells again.
    if (now === after) return;
    const before = this.#changes.has(key) ? this.#changes.get(key)?.before : now;
    if (after === undefined) this.#objects.delete(key);
    else this.#objects.set(key, after);
    if (before === undefined && after === undefined) this.#changes.delete(key);
    else this.#changes.set(key, { before, after });
  }

  /** Events of one read come in one go: they are told together after it. A fault of a listener is none of the API server's. */
  #tellSoon(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    queueMicrotask(() => this.#tell());
  }

  #tell(): void {
    this.#isTelling = false;
    if (this.#changes.size === 0) return;
    const changes = [...this.#changes.values()];
    this.#changes.clear();
    for (const listener of this.#listeners) listener(changes);
  }

  #heard(): void {
    this.#heardAt = this.#deps.clock.monotonic();
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
