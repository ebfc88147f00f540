import { chmodSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { KubeApi, PodProcess, PodRef } from '../../kubernetes/kube-api.ts';
import { podPath } from '../../kubernetes/paths.ts';
import type { Clock } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { joinStreams } from './join-streams.ts';
import { relayCommand } from './relay.ts';
import { listRecords, readWays, type ForwarderFiles, type PodWay } from './way-files.ts';

/** What the ways need. */
export interface ForwardedWaysDeps {
  readonly files: ForwarderFiles;
  readonly api: () => Promise<KubeApi>;
  readonly clock: Clock;
  /** Told of a way that cannot be listened on, and of the first connection of one that fails after one that did not. */
  readonly onFailure: (way: PodWay, message: string) => void;
}

/** Pods that a cluster is asked for at each look for those that are gone. */
const askedAtOnce = 10;

/** A way that is listened on. */
interface OpenWay {
  readonly way: PodWay;
  readonly server: Server;
  /** Of its socket file. */
  readonly inode: number | undefined;
}

/** What the connections of a way have in common. */
interface WayState {
  readonly pod: PodRef;
  readonly way: PodWay;
  /** Whether that they fail was told. */
  isFailing: boolean;
}

/** All ways of a cluster: sockets here, each connection to which is carried to a pod through the API server. */
export class ForwardedWays {
  readonly #deps: ForwardedWaysDeps;
  /** By record and socket. */
  readonly #open = new Map<string, Map<string, OpenWay>>();
  readonly #connections = new Set<Socket>();
  /** The last look at each record that is under way: two at once would listen on one socket, and one of them could not be ended any more. */
  readonly #syncing = new Map<string, Promise<void>>();
  #usedAt: number;
  /** Which record is asked for next, counted in the order of their ways. */
  #nextAsked = 0;
  #isAsking = false;

  constructor(deps: ForwardedWaysDeps) {
    this.#deps = deps;
    this.#usedAt = deps.clock.monotonic();
  }

  get count(): number {
    return [...this.#open.values()].reduce((sum, ways) => sum + ways.size, 0);
  }

  /** For how long nobody has used it or asked for anything, ms. */
  get idleMs(): number {
    return this.#connections.size > 0 ? 0 : this.#deps.clock.monotonic() - this.#usedAt;
  }

  /** Somebody counts on it. */
  touch(): void {
    this.#usedAt = this.#deps.clock.monotonic();
  }

  /** Listens on what the records say, and on nothing else; what listens already goes on. What cannot be listened on is told, and takes nothing else with it. */
  async syncAll(): Promise<void> {
    for (const record of new Set([...listRecords(this.#deps.files), ...this.#open.keys()])) {
      await this.sync(record).catch(() => undefined);
    }
  }

  /** The same for one pod. Those of one pod wait for each other. */
  async sync(record: string): Promise<void> {
    this.touch();
    const before = this.#syncing.get(record);
    const own = before === undefined ? this.#sync(record) : before.then(() => this.#sync(record));
    // Whoever comes next only waits: a failure is told to who asked.
    const over = own.catch(() => undefined);
    this.#syncing.set(record, over);
    try {
      await own;
    } finally {
      if (this.#syncing.get(record) === over) this.#syncing.delete(record);
    }
  }

  async #sync(record: string): Promise<void> {
    const wanted = readWays(this.#deps.files, record);
    const open = this.#open.get(record) ?? new Map<string, OpenWay>();
    this.#open.set(record, open);
    for (const [socket, one] of open) {
      const isWanted = wanted?.ways.some((way) => way.socket === socket) === true;
      // A file that somebody removed is made anew.
      if (isWanted && isInPlace(one)) continue;
      open.delete(socket);
      closeWay(one);
    }
    if (wanted === undefined) {
      this.#open.delete(record);
      return;
    }
    const failures: unknown[] = [];
    for (const way of wanted.ways) {
      if (open.has(way.socket)) continue;
      try {
        open.set(way.socket, await this.#listen(wanted.pod, way));
      } catch (error) {
        this.#deps.onFailure(way, messageOf(error));
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Forgets the ways to pods that the cluster does not have any more: who gave them back may have died before it could say so, or have looked for a
   * way at that moment. Asks for a few at each call, in turn; a call while another one is under way asks for none.
   */
  async removeGone(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      await this.#removeSomeGone();
    } finally {
      this.#isAsking = false;
    }
  }

  async #removeSomeGone(): Promise<void> {
    const api = await this.#deps.api();
    const records = [...this.#open.keys()];
    const first = this.#nextAsked < records.length ? this.#nextAsked : 0;
    this.#nextAsked = first + askedAtOnce;
    for (const record of records.slice(first, first + askedAtOnce)) {
      const known = readWays(this.#deps.files, record);
      if (known === undefined || (await api.get(podPath(known.pod))) !== undefined) continue;
      rmSync(join(this.#deps.files.records, record), { force: true });
      await this.sync(record);
    }
  }

  /** Ends all connections and removes the sockets. */
  async close(): Promise<void> {
    await Promise.all(this.#syncing.values());
    const all = [...this.#open.values()].flatMap((ways) => [...ways.values()]);
    this.#open.clear();
    for (const connection of this.#connections) connection.destroy();
    for (const one of all) closeWay(one);
  }

  #listen(pod: PodRef, way: PodWay): Promise<OpenWay> {
    // Node removes the file that it listened on when it stops, whoever's it is by then: it gets its name afterwards.
    const own = `${way.socket}.${randomHex(4)}`;
    const state: WayState = { pod, way, isFailing: false };
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => void this.#carry(state, client));
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path: own, backlog: 4096 }, () => {
        server.off('error', reject);
        server.on('error', (error) => this.#deps.onFailure(way, messageOf(error)));
        try {
          chmodSync(own, 0o600);
          const inode = inodeOf(own);
          renameSync(own, way.socket);
          resolve({ way, server, inode });
        } catch (error) {
          server.close();
          reject(error);
        }
      });
    });
  }

  async #carry(state: WayState, client: Socket): Promise<void> {
    this.#connections.add(client);
    const gone = new AbortController();
    client.on('error', () => gone.abort());
    client.once('close', () => {
      this.#connections.delete(client);
      this.touch();
      gone.abort();
    });
    try {
      const stream = await this.#stream(state, gone.signal);
      // Refused before it was ours.
      if (stream.destroyed) throw stream.errored ?? new Error('the connection was closed');
      stream.on('error', (error) => this.#failed(state, error));
      stream.once('data', () => (state.isFailing = false));
      joinStreams(client, stream, this.#deps.clock);
    } catch (error) {
      if (!gone.signal.aborted) this.#failed(state, error);
      endUnanswered(client);
    }
  }

  async #stream(state: WayState, signal: AbortSignal): Promise<Duplex> {
    const api = await this.#deps.api();
    const { pod, way } = state;
    const { to } = way;
    if (typeof to === 'number') return api.portForward(pod, to, { signal });
    const relay = await api.exec(pod, relayCommand(to), { stdin: true, signal });
    let said = '';
    relay.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(-1_000)));
    void this.#watchRelay(state, relay, () => said.trim(), signal);
    return relay.stdio;
  }

  async #watchRelay(state: WayState, { ended }: PodProcess, said: () => string, gone: AbortSignal): Promise<void> {
    const { exitCode, message } = await ended;
    // When the client leaves, the relay is ended from here.
    if (exitCode === 0 || gone.aborted) return;
    const words = said();
    this.#failed(state, new Error(words === '' ? (message ?? 'the connection was lost') : words));
  }

  #failed(state: WayState, error: unknown): void {
    if (state.isFailing) return;
    state.isFailing = true;
    this.#deps.onFailure(state.way, messageOf(error));
  }
}

/** What the client has sent is read and thrown away: closing a socket with something unread would look like a connection that broke. */
function endUnanswered(client: Socket): void {
  client.resume();
  client.end();
}

/** Connections that are open go on. A file that another forwarder has put there meanwhile is its own: the number of ours is not given away while we listen. */
function closeWay(one: OpenWay): void {
  if (isInPlace(one)) rmSync(one.way.socket, { force: true });
  one.server.close();
}

function isInPlace({ way, inode }: OpenWay): boolean {
  return inode !== undefined && inodeOf(way.socket) === inode;
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}
