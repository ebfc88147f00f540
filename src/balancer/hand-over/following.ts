import { connect, type Socket } from 'node:net';
import type { RemainingCommand, ReplicasCommand } from '../../domain/balancer-link.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import { readCommand } from '../control/command.ts';

const sayEveryMs = 250;
const reconnectMs = 100;

/** What a process has left, without what changes between two messages. */
export type Remaining = Omit<RemainingCommand, 'type' | 'requests' | 'errors'> & {
  /** Since the process handed over. */
  readonly requestsTotal: number;
  readonly errorsTotal: number;
};

/** What following needs. */
export interface FollowingOptions {
  /** Where the successor, or whoever comes after it, takes commands. */
  readonly controlSocket: string;
  readonly clock: Clock;
  readonly remaining: () => Remaining;
  readonly onReplicas: (command: ReplicasCommand) => void;
}

/** The link of a process that has handed over to the one that serves in its place; made anew whenever it breaks. */
export class Following {
  readonly #options: FollowingOptions;
  readonly #cancelTimer: CancelTimer;
  #socket: Socket | undefined;
  #said = '';
  #requests = 0;
  #errors = 0;
  #isStopped = false;

  constructor(options: FollowingOptions) {
    this.#options = options;
    this.#cancelTimer = options.clock.every(sayEveryMs, () => this.say());
    this.#connect();
  }

  /** Says what is left, if that is something new. */
  say(): void {
    if (this.#socket === undefined) return;
    const { requestsTotal, errorsTotal, inFlight, applied } = this.#options.remaining();
    const state = JSON.stringify([requestsTotal, errorsTotal, inFlight, applied]);
    if (state === this.#said) return;
    this.#said = state;
    const [requests, errors] = [requestsTotal - this.#requests, errorsTotal - this.#errors];
    this.#requests = requestsTotal;
    this.#errors = errorsTotal;
    this.#socket.write(`${JSON.stringify({ type: 'remaining', requests, errors, inFlight, applied } satisfies RemainingCommand)}\n`);
  }

  /** Says the last and lets go. */
  stop(): void {
    this.say();
    this.#isStopped = true;
    this.#cancelTimer();
    this.#socket?.destroySoon();
  }

  #connect(): void {
    const socket = connect(this.#options.controlSocket);
    socket.once('connect', () => {
      this.#socket = socket;
      this.#said = '';
      this.say();
    });
    socket.on(
      'data',
      splitLines((line) => {
        const command = readCommand(line);
        if (command?.type === 'replicas') this.#options.onReplicas(command);
      }),
    );
    // Refused, missing and broken links all end in `close`, after which it is tried again.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#socket = undefined;
      if (!this.#isStopped) this.#options.clock.after(reconnectMs, () => !this.#isStopped && this.#connect());
    });
  }
}
