import { connect, type Socket } from 'node:net';
import type { RemainingCommand, ReplicasCommand } from '../../domain/balancer-link.ts';
import { outcomesSince, type Outcomes } from '../../domain/outcomes.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import { readCommand } from '../control/read-command.ts';

const reportIntervalMs = 250;
const reconnectMs = 100;

/** The remaining counts of a process, with totals in place of the changes since the last message. */
type Remaining = Omit<RemainingCommand, 'type' | 'requests' | 'errors' | 'outcomes'> & {
  /** Since the process handed over. */
  readonly requestsTotal: number;
  readonly errorsTotal: number;
  readonly outcomes: Outcomes;
};

interface SuccessorLinkOptions {
  /** The control socket of the successor, or of a later process. */
  readonly controlSocket: string;
  readonly clock: Clock;
  readonly remaining: () => Remaining;
  readonly onReplicas: (command: ReplicasCommand) => void;
}

/** The link from a process that has handed over to the one that serves. Reconnects when it breaks. */
export class SuccessorLink {
  readonly #options: SuccessorLinkOptions;
  readonly #cancelTimer: CancelTimer;
  #socket: Socket | undefined;
  #reported = '';
  #requests = 0;
  #errors = 0;
  #outcomes: Outcomes = {};
  #isStopped = false;

  constructor(options: SuccessorLinkOptions) {
    this.#options = options;
    this.#cancelTimer = options.clock.every(reportIntervalMs, () => this.report());
    this.#connect();
  }

  /** Sends the remaining counts if they have changed. */
  report(): void {
    if (this.#socket === undefined) return;
    const { requestsTotal, errorsTotal, inFlight, outcomes, applied } = this.#options.remaining();
    const state = JSON.stringify([requestsTotal, errorsTotal, inFlight, outcomes, applied]);
    if (state === this.#reported) return;
    this.#reported = state;
    const [requests, errors] = [requestsTotal - this.#requests, errorsTotal - this.#errors];
    this.#requests = requestsTotal;
    this.#errors = errorsTotal;
    const counts = { requests, errors, inFlight, outcomes: outcomesSince(this.#outcomes, outcomes) };
    this.#outcomes = outcomes;
    this.#socket.write(`${JSON.stringify({ type: 'remaining', ...counts, applied } satisfies RemainingCommand)}\n`);
  }

  /** Sends the last counts and closes the link. */
  stop(): void {
    this.report();
    this.#isStopped = true;
    this.#cancelTimer();
    this.#socket?.destroySoon();
  }

  #connect(): void {
    const socket = connect(this.#options.controlSocket);
    socket.once('connect', () => {
      this.#socket = socket;
      this.#reported = '';
      this.report();
    });
    socket.on(
      'data',
      splitLines((line) => {
        const command = readCommand(line);
        if (command?.type === 'replicas') this.#options.onReplicas(command);
      }),
    );
    // Refused, missing and broken links all end in `close`, after which the process reconnects.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#socket = undefined;
      if (!this.#isStopped) this.#options.clock.after(reconnectMs, () => !this.#isStopped && this.#connect());
    });
  }
}
