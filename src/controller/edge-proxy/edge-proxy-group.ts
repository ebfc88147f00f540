import type { EdgeProxyMember, EdgeProxyCommand, ProxiedService, ProxiedServiceState } from '../../domain/edge-proxy/edge-proxy.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { CancelTimer } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import type { Logger } from '../../shared/log.ts';
import { requestEdgeProxy, parseReport, send, type EdgeProxyAccess } from './edge-proxy-connection.ts';

/** Delay before a silent edge proxy is asked again, ms. */
const retryMs = 250;
/** An edge proxy reports its state every second. After this much silence the controller reconnects, ms. */
const silentMs = 4_000;
const pollIntervalMs = 500;

interface EdgeProxyView {
  readonly stop: AbortController;
  states: Readonly<Record<string, ProxiedServiceState>>;
  isConnected: boolean;
  /** Sends the newest set of services, if the edge proxy is connected. */
  push: () => void;
}

/** A service at an edge proxy. `state` is undefined while the edge proxy does not answer or know the service. */
export interface ServiceAtEdgeProxy {
  readonly member: EdgeProxyMember;
  readonly state: ProxiedServiceState | undefined;
}

/** The leading controller's edge proxies: sends each of them the services to serve, and receives their states. */
export class EdgeProxyGroup {
  readonly #access: EdgeProxyAccess;
  readonly #log: Logger;
  readonly #proxies = new Map<string, EdgeProxyView & { readonly member: EdgeProxyMember }>();
  /** Undefined until the services are read: a controller that just started must not remove any from edge proxies. */
  #services: readonly ProxiedService[] | undefined;
  #text = '';

  constructor(access: EdgeProxyAccess, log: Logger) {
    this.#access = access;
    this.#log = log;
  }

  get members(): readonly EdgeProxyMember[] {
    return [...this.#proxies.values()].map(({ member }) => member);
  }

  setMembers(members: readonly EdgeProxyMember[]): void {
    const desired = new Map(members.map((member) => [`${member.name} ${member.host} ${member.port}`, member]));
    for (const [id, { stop }] of this.#proxies) {
      if (desired.has(id)) continue;
      this.#proxies.delete(id);
      stop.abort();
    }
    for (const [id, member] of desired) {
      if (this.#proxies.has(id)) continue;
      const view = { member, stop: new AbortController(), states: {}, isConnected: false, push: () => undefined };
      this.#proxies.set(id, view);
      void this.#follow(member, view);
    }
  }

  /** Replaces the services to serve. Sends nothing when they are unchanged. */
  serve(services: readonly ProxiedService[]): void {
    const text = JSON.stringify(services);
    if (this.#services !== undefined && text === this.#text) return;
    this.#services = services;
    this.#text = text;
    for (const { push } of this.#proxies.values()) push();
  }

  at(key: string): readonly ServiceAtEdgeProxy[] {
    return [...this.#proxies.values()].map(({ member, isConnected, states }) => ({ member, state: isConnected ? states[key] : undefined }));
  }

  ask(member: EdgeProxyMember, command: EdgeProxyCommand, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    return requestEdgeProxy(member, this.#access, command, signal);
  }

  close(): void {
    this.setMembers([]);
  }

  async #follow(member: EdgeProxyMember, view: EdgeProxyView): Promise<void> {
    const { signal } = view.stop;
    let failure = '';
    while (!signal.aborted) {
      try {
        if (this.#services !== undefined) {
          await this.#connection(member, view, this.#services);
          failure = '';
        }
      } catch (error) {
        if (signal.aborted) return;
        if (messageOf(error) !== failure) this.#log.warn({ reason: messageOf(error) }, 'an edge proxy does not answer; it is tried again');
        failure = messageOf(error);
        // The lease keeper decides whether this controller still leads, and ends this process if not.
        if (error instanceof SvcError && error.code === 'SVC_NOT_LEADER') await this.#access.clock.sleep(silentMs, signal);
      }
      await this.#access.clock.sleep(retryMs, signal);
    }
  }

  async #connection(member: EdgeProxyMember, view: EdgeProxyView, services: readonly ProxiedService[]): Promise<void> {
    const { clock } = this.#access;
    const { signal } = view.stop;
    const socket = await requestEdgeProxy(member, this.#access, { type: 'services', services }, signal);
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const cut = (): void => {
      socket.destroy();
    };
    let lastSeenAt = clock.monotonic();
    const cancelSilence: CancelTimer = clock.every(pollIntervalMs, () => {
      if (clock.monotonic() - lastSeenAt >= silentMs) cut();
    });
    signal.addEventListener('abort', cut);
    // The signal may have aborted between the answer and this line.
    if (signal.aborted) cut();
    socket.once('close', close);
    socket.on(
      'data',
      splitLines((line) => {
        lastSeenAt = clock.monotonic();
        const report = parseReport(line);
        if (report?.type === 'state') view.states = report.services;
      }),
    );
    view.push = () => {
      if (this.#services !== undefined) send(socket, { type: 'services', services: this.#services });
    };
    view.isConnected = true;
    // The services changed while the edge proxy was being asked.
    if (this.#services !== services) view.push();
    if (!socket.destroyed) await closed;
    view.isConnected = false;
    view.push = () => undefined;
    view.states = {};
    cancelSilence();
    signal.removeEventListener('abort', cut);
  }
}
