import { existsSync, readFileSync } from 'node:fs';
import type { LeftoverView, RouteReply } from '../api/contract.ts';
import { listEverywhere, removeEverywhere } from '../provision/left-machines.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { servicePaths, type HomePaths } from '../shared/paths.ts';
import type { ProcessIdentity } from '../shared/system/process-identity.ts';
import { clusterPaths } from './cluster/cluster-paths.ts';
import type { DaemonContext } from './daemon-context.ts';
import { greet } from './greeting.ts';

/** Timeout for listing a provider's machines, ms: `status` waits for it. */
const listMs = 10_000;
const greetMs = 2_000;

type Kind = LeftoverView['kind'];

/** Without a record, a folder may be deleted if nothing was started for it (`hasRun` is false). */
function folderOf(paths: HomePaths, kind: Kind, key: string): { readonly dir: string; readonly hasRun: boolean } {
  if (kind === 'cluster') {
    const { dir, launchLog } = clusterPaths(paths, key);
    return { dir, hasRun: existsSync(launchLog) };
  }
  const { dir, balancerConfig, reconcilerLock } = servicePaths(paths, key);
  return { dir, hasRun: existsSync(balancerConfig) || existsSync(reconcilerLock) };
}

/** The tag that all machines of a service or cluster carry, and no others. */
const tagsOf = (kind: Kind, key: string): Readonly<Record<string, string>> =>
  kind === 'cluster' ? { [clusterKeyTag]: key } : { 'svc-service-key': key };

/** The tag that identifies a cluster's machines when the records are lost. */
export const clusterKeyTag = 'svc-cluster-key';

/**
 * Services and clusters of this home that its database lacks. They keep serving until a user's command removes them.
 */
export class Leftovers {
  readonly #context: DaemonContext;
  readonly #kinds = new Map<string, Kind>();

  constructor(context: DaemonContext) {
    this.#context = context;
  }

  get keys(): ReadonlySet<string> {
    return new Set(this.#kinds.keys());
  }

  /** Whether a folder without a record is from another database. What this database once recorded ended normally. */
  async claims(kind: Kind, key: string): Promise<boolean> {
    if (this.#kinds.has(key)) return true;
    const { paths, store, log } = this.#context;
    if (!folderOf(paths, kind, key).hasRun || (await store.events.knows(key))) return false;
    this.#kinds.set(key, kind);
    log.warn({ kind, key }, 'left over from another state database; svc status names it, svc controller sweep removes it');
    return true;
  }

  /** All current leftovers, and the providers whose machines could not be listed. */
  async list(signal: AbortSignal): Promise<LeftoverView[]> {
    const { clock, paths } = this.#context;
    return Promise.all(
      [...this.#kinds]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(async ([key, kind]): Promise<LeftoverView> => {
          const found = await listEverywhere(this.#context, tagsOf(kind, key), listMs, { clock, signal });
          const machines = found.flatMap(({ provider, machines: at }) => at.map(({ id }) => ({ provider, id })));
          const unasked = found.flatMap(({ provider, error }) => (error === undefined ? [] : [{ provider, reason: messageOf(error) }]));
          const { name, port } = describe(paths, key);
          const tagged = found.flatMap(({ machines: at }) => at.flatMap(({ tags }) => tags[`svc-${kind}`] ?? []));
          return {
            kind,
            key,
            name: name ?? tagged[0] ?? null,
            port,
            balancerPid: (await this.#balancer(key))?.pid ?? null,
            machines,
            unasked,
          };
        }),
    );
  }

  /** Removes machines, then processes and files (`forget`). The next sweep retries what remains. */
  async sweep(forget: (leftover: LeftoverView) => Promise<void>, signal: AbortSignal): Promise<RouteReply<'sweep'>> {
    const { clock, paths } = this.#context;
    const removed: LeftoverView[] = [];
    const failed: RouteReply<'sweep'>['failed'] = [];
    for (const leftover of await this.list(signal)) {
      const { kind, key } = leftover;
      try {
        await removeEverywhere(this.#context, tagsOf(kind, key), key, { clock, signal });
        await forget(leftover);
        if (existsSync(folderOf(paths, kind, key).dir))
          throw new SvcError('SVC_CLEANUP_FAILED', 'Its folder could not be removed; the log of the controller says why.');
        this.#kinds.delete(key);
        removed.push(leftover);
      } catch (error) {
        signal.throwIfAborted();
        failed.push({ leftover, reason: messageOf(error) });
      }
    }
    return { removed, failed };
  }

  async #balancer(key: string): Promise<ProcessIdentity | undefined> {
    const { paths, clock } = this.#context;
    const greeting = await greet(servicePaths(paths, key).balancerSocket, { clock, timeoutMs: greetMs });
    greeting?.socket.destroy();
    return greeting?.identity;
  }
}

function describe(paths: HomePaths, key: string): Pick<LeftoverView, 'name' | 'port'> {
  let text = '';
  try {
    text = readFileSync(servicePaths(paths, key).balancerConfig, 'utf8');
  } catch {
    // Balancers on edge proxies have their configuration there.
  }
  const config = parseJson(text);
  if (!isObject(config)) return { name: null, port: null };
  const { service, port } = config;
  return { name: typeof service === 'string' ? service : null, port: typeof port === 'number' ? port : null };
}
