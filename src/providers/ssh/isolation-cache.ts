import type { FoundIsolation } from '../../remote/isolation/find-isolation.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { Host, HostState } from './host.ts';
import { findHostIsolation, withNode, type UsableIsolation } from './isolation.ts';

/** Under another boot, or as another user, another isolation may work. */
interface Found<What> {
  readonly of: string;
  readonly what: Promise<What>;
}

/** Which isolation each host has: tried once per process, host and boot of the host. */
export class IsolationCache {
  readonly #paths: HomePaths;
  readonly #kinds = new WeakMap<Host, Found<FoundIsolation>>();
  readonly #usable = new WeakMap<Host, Found<UsableIsolation>>();

  constructor(paths: HomePaths) {
    this.#paths = paths;
  }

  /** What works there. Throws only when the host cannot be reached. */
  kindOn(host: Host, state: HostState): Promise<FoundIsolation> {
    return remember(this.#kinds, host, state, () => findHostIsolation(host, state.facts));
  }

  /** The same, with everything brought there that it needs; the first time that takes as long as 40 MB take. */
  usableOn(host: Host, state: HostState): Promise<UsableIsolation> {
    return remember(this.#usable, host, state, async () => withNode(host, state.facts, await this.kindOn(host, state), this.#paths));
  }
}

function remember<What>(
  cache: WeakMap<Host, Found<What>>,
  host: Host,
  { facts, bootId }: HostState,
  find: () => Promise<What>,
): Promise<What> {
  const of = `${bootId} ${facts.uid} ${facts.home}`;
  const known = cache.get(host);
  if (known?.of === of) return known.what;
  const found = { of, what: find() };
  cache.set(host, found);
  // What could not be found out now may be later.
  found.what.catch(() => cache.get(host) === found && cache.delete(host));
  return found.what;
}
