import { chmodSync, renameSync, rmSync, statSync } from 'node:fs';
import { type Server, type Socket, createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import type { KubeApi, PodProcess, PodRef } from '../../kubernetes/kube-api.ts';
import { podPath } from '../../kubernetes/paths.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';
import { randomHex } from '../../shared/hex.ts';
import { Semaphore } from '../session/semaphore.ts';
import type { Tunnel } from '../tunnel-records.ts';
import type { ForwarderFiles } from './forwarder-files.ts';
import { socketRelayCommand } from './socket-relay.ts';

interface ForwardedTunnelsDeps {
  readonly records: ForwarderFiles['records'];
  readonly api: () => Promise<KubeApi>;
  readonly clock: Clock;
  /** Called when a tunnel's socket cannot be listened on, and for its first failed connection after a working one. */
  readonly onFailure: (tunnel: Tunnel, message: string) => void;
}

/** Pods checked for existence per call of `removeGone`. */
const checkedAtOnce = 10;

interface OpenTunnel {
  readonly tunnel: Tunnel;
  readonly server: Server;
  readonly inode: number | undefined;
}

interface TunnelState {
  readonly pod: PodRef;
  readonly tunnel: Tunnel;
  isFailing: boolean;
}

/** All tunnels of a Kubernetes cluster. The API server carries the connections of their local sockets to pods. */
export class ForwardedTunnels {
  readonly #deps: ForwardedTunnelsDeps;
  /** By record and socket. */
  readonly #open = new Map<string, Map<string, OpenTunnel>>();
  readonly #connections = new Set<Socket>();
  /** Serialises syncs. Two at once would listen on one socket, and one of the two listeners could never be closed. */
  readonly #turns = new Semaphore(1);
  #usedAt: number;
  #nextChecked = 0;
  #isChecking = false;

  constructor(deps: ForwardedTunnelsDeps) {
    this.#deps = deps;
    this.#usedAt = deps.clock.monotonic();
  }

  get count(): number {
    return [...this.#open.values()].reduce((sum, tunnels) => sum + tunnels.size, 0);
  }

  /** Time without connections and requests, ms. */
  get idleMs(): number {
    return this.#connections.size > 0 ? 0 : this.#deps.clock.monotonic() - this.#usedAt;
  }

  touch(): void {
    this.#usedAt = this.#deps.clock.monotonic();
  }

  /** Listens on the sockets of all records and on no others. A failed socket is reported; the rest is unaffected. */
  async syncAll(): Promise<void> {
    for (const record of new Set([...this.#deps.records.list(), ...this.#open.keys()])) {
      await this.sync(record).catch(() => undefined);
    }
  }

  async sync(record: string): Promise<void> {
    this.touch();
    await this.#turns.run(() => this.#sync(record));
  }

  async #sync(record: string): Promise<void> {
    const desired = this.#deps.records.read(record);
    const open = this.#open.get(record) ?? new Map<string, OpenTunnel>();
    this.#open.set(record, open);
    for (const [socket, one] of open) {
      const isDesired = desired?.tunnels.some((tunnel) => tunnel.socket === socket) === true;
      // A removed socket file is created again.
      if (isDesired && isInPlace(one)) continue;
      open.delete(socket);
      closeTunnel(one);
    }
    if (desired === undefined) {
      this.#open.delete(record);
      return;
    }
    const failures: unknown[] = [];
    for (const tunnel of desired.tunnels) {
      if (open.has(tunnel.socket)) continue;
      try {
        open.set(tunnel.socket, await this.#listen(desired.route.pod, tunnel));
      } catch (error) {
        this.#deps.onFailure(tunnel, messageOf(error));
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Removes tunnels to pods that no longer exist. A process that released a pod may have died before it removed the
   * record, or another process was opening a tunnel at that moment. Each call checks a few pods, in turn.
   */
  async removeGone(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      const api = await this.#deps.api();
      const records = [...this.#open.keys()];
      const first = this.#nextChecked < records.length ? this.#nextChecked : 0;
      this.#nextChecked = first + checkedAtOnce;
      for (const record of records.slice(first, first + checkedAtOnce)) {
        const known = this.#deps.records.read(record);
        if (known === undefined || (await api.get(podPath(known.route.pod))) !== undefined) continue;
        this.#deps.records.remove(record);
        await this.sync(record);
      }
    } finally {
      this.#isChecking = false;
    }
  }

  async close(): Promise<void> {
    // Wait for the syncs in progress.
    await this.#turns.run(() => Promise.resolve());
    const all = [...this.#open.values()].flatMap((tunnels) => [...tunnels.values()]);
    this.#open.clear();
    for (const connection of this.#connections) connection.destroy();
    for (const one of all) closeTunnel(one);
  }

  #listen(pod: PodRef, tunnel: Tunnel): Promise<OpenTunnel> {
    // On close, Node unlinks the path it listened on, even if another forwarder has created a file there by then. So
    // listen under a private name and rename.
    const own = `${tunnel.socket}.${randomHex(4)}`;
    const state: TunnelState = { pod, tunnel, isFailing: false };
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => void this.#carry(state, client));
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path: own, backlog: 4096 }, () => {
        server.off('error', reject);
        server.on('error', (error) => this.#deps.onFailure(tunnel, messageOf(error)));
        try {
          chmodSync(own, 0o600);
          const inode = inodeOf(own);
          renameSync(own, tunnel.socket);
          resolve({ tunnel, server, inode });
        } catch (error) {
          server.close();
          reject(error);
        }
      });
    });
  }

  async #carry(state: TunnelState, client: Socket): Promise<void> {
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
      // The stream failed before this code could attach a handler.
      if (stream.destroyed) throw stream.errored ?? new Error('the connection was closed');
      stream.on('error', (error) => this.#failed(state, error));
      stream.once('data', () => (state.isFailing = false));
      joinStreams(client, stream, this.#deps.clock);
    } catch (error) {
      if (!gone.signal.aborted) this.#failed(state, error);
      endUnanswered(client);
    }
  }

  async #stream(state: TunnelState, signal: AbortSignal): Promise<Duplex> {
    const api = await this.#deps.api();
    const { pod, tunnel } = state;
    const { to } = tunnel;
    if (typeof to === 'number') return api.portForward(pod, to, { signal });
    const relay = await api.exec(pod, socketRelayCommand(to), { stdin: true, signal });
    let said = '';
    relay.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString('utf8')).slice(-1_000)));
    void this.#watchRelay(state, relay, () => said.trim(), signal);
    return relay.stdio;
  }

  async #watchRelay(state: TunnelState, { ended }: PodProcess, said: () => string, gone: AbortSignal): Promise<void> {
    const { exitCode, message } = await ended;
    // This process ends the relay when the client disconnects; that is no failure.
    if (exitCode === 0 || gone.aborted) return;
    const words = said();
    this.#failed(state, new Error(words === '' ? (message ?? 'the connection was lost') : words));
  }

  #failed(state: TunnelState, error: unknown): void {
    if (state.isFailing) return;
    state.isFailing = true;
    this.#deps.onFailure(state.tunnel, messageOf(error));
  }
}

/** Discards the client's data: closing a socket with unread data would look like a broken connection. */
function endUnanswered(client: Socket): void {
  client.resume();
  client.end();
}

/**
 * Open connections continue. A file with another inode belongs to another forwarder and stays. The inode is not reused
 * while this process listens.
 */
function closeTunnel(one: OpenTunnel): void {
  if (isInPlace(one)) rmSync(one.tunnel.socket, { force: true });
  one.server.close();
}

function isInPlace({ tunnel, inode }: OpenTunnel): boolean {
  return inode !== undefined && inodeOf(tunnel.socket) === inode;
}

/** Identifies a socket file; undefined when it does not exist. */
export function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/**
 * ms. Kubernetes cannot carry a half-close, so a disconnected client looks like a client that has sent everything.
 * After this time without a reply the client is presumed gone, and the connection in the pod ends.
 */
const quietMs = 2_000;

function joinStreams(client: Socket, stream: Duplex, clock: Clock): void {
  let cancelQuiet: CancelTimer | undefined;
  const awaitQuiet = (): void => {
    cancelQuiet?.();
    cancelQuiet = clock.after(quietMs, () => client.destroy());
  };
  client.once('end', () => {
    awaitQuiet();
    stream.on('data', awaitQuiet);
  });
  client.on('error', () => stream.destroy());
  client.once('close', () => {
    cancelQuiet?.();
    stream.destroy();
  });
  // Also emitted when no program listens on the port. Bytes in transit to the client still arrive.
  stream.on('error', () => undefined);
  stream.once('close', () => {
    client.resume();
    client.end();
  });
  client.pipe(stream, { end: false });
  stream.pipe(client);
}
