import type { BalancerHostMember, HostCommand, HostedService, HostedState } from '../../domain/balancer-host.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { CancelTimer } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import type { Logger } from '../../shared/log.ts';
import { askHost, parseReport, send, type HostAccess } from './host-link.ts';

/** Pause before a host that does not answer is asked again, ms. */
const retryMs = 250;
/** A host tells its state each second; one that does not for so long is asked anew. */
const silentMs = 4_000;
const looksEveryMs = 500;

/** One host and what it said last. */
interface HostView {
  readonly stop: AbortController;
  states: Readonly<Record<string, HostedState>>;
  isConnected: boolean;
  /** Says the newest set, if it is connected. */
  push: () => void;
}

/** How one service does at one host: undefined in `state` while the host does not answer, or does not know it yet. */
export interface HostedAt {
  readonly member: BalancerHostMember;
  readonly state: HostedState | undefined;
}

/** What the leading controller does with its balancer hosts: each of them is told which services to serve, and says how they do. */
export class HostGroup {
  readonly #access: HostAccess;
  readonly #log: Logger;
  readonly #hosts = new Map<string, HostView & { readonly member: BalancerHostMember }>();
  /** Undefined until it is known: a controller that has just begun must not take away what it has not read yet. */
  #services: readonly HostedService[] | undefined;
  #text = '';

  constructor(access: HostAccess, log: Logger) {
    this.#access = access;
    this.#log = log;
  }

  get members(): readonly BalancerHostMember[] {
    return [...this.#hosts.values()].map(({ member }) => member);
  }

  /** Who they are from now on. */
  setMembers(members: readonly BalancerHostMember[]): void {
    const wanted = new Map(members.map((member) => [`${member.name} ${member.host} ${member.port}`, member]));
    for (const [id, { stop }] of this.#hosts) {
      if (wanted.has(id)) continue;
      this.#hosts.delete(id);
      stop.abort();
    }
    for (const [id, member] of wanted) {
      if (this.#hosts.has(id)) continue;
      const view = { member, stop: new AbortController(), states: {}, isConnected: false, push: () => undefined };
      this.#hosts.set(id, view);
      void this.#follow(member, view);
    }
  }

  /** What they are to serve from now on; nothing is sent when that is what they know. */
  serve(services: readonly HostedService[]): void {
    const text = JSON.stringify(services);
    if (this.#services !== undefined && text === this.#text) return;
    this.#services = services;
    this.#text = text;
    for (const { push } of this.#hosts.values()) push();
  }

  /** How a service does at each. */
  at(key: string): readonly HostedAt[] {
    return [...this.#hosts.values()].map(({ member, isConnected, states }) => ({ member, state: isConnected ? states[key] : undefined }));
  }

  /** Asks a host for a text, which is the stream that is returned. */
  ask(member: BalancerHostMember, command: HostCommand, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    return askHost(member, this.#access, command, signal);
  }

  close(): void {
    this.setMembers([]);
  }

  async #follow(member: BalancerHostMember, view: HostView): Promise<void> {
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
        if (messageOf(error) !== failure)
          this.#log.warn({ reason: messageOf(error) }, 'a balancer host does not answer; it is tried again');
        failure = messageOf(error);
        // The keeper of the lease knows better, and ends this process.
        if (error instanceof SvcError && error.code === 'SVC_NOT_LEADER') await this.#access.clock.sleep(silentMs, signal);
      }
      await this.#access.clock.sleep(retryMs, signal);
    }
  }

  async #connection(member: BalancerHostMember, view: HostView, services: readonly HostedService[]): Promise<void> {
    const { clock } = this.#access;
    const { signal } = view.stop;
    const socket = await askHost(member, this.#access, { type: 'services', services }, signal);
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const cut = (): void => {
      socket.destroy();
    };
    let heardAt = clock.monotonic();
    const cancelSilence: CancelTimer = clock.every(looksEveryMs, () => {
      if (clock.monotonic() - heardAt >= silentMs) cut();
    });
    signal.addEventListener('abort', cut);
    // It may have been given up between its answer and here.
    if (signal.aborted) cut();
    socket.once('close', close);
    socket.on(
      'data',
      splitLines((line) => {
        heardAt = clock.monotonic();
        const report = parseReport(line);
        if (report?.type === 'state') view.states = report.services;
      }),
    );
    view.push = () => {
      if (this.#services !== undefined) send(socket, { type: 'services', services: this.#services });
    };
    view.isConnected = true;
    // What changed while it was being asked.
    if (this.#services !== services) view.push();
    if (!socket.destroyed) await closed;
    view.isConnected = false;
    view.push = () => undefined;
    view.states = {};
    cancelSilence();
    signal.removeEventListener('abort', cut);
  }
}
