import type { Socket } from 'node:net';
import type { CancelTimer, Clock } from '../../shared/clock.ts';

/** Limits for clients. Strangers are health probes, and clients that have not yet proved to know the token. */
export interface AdmissionLimits {
  /** Concurrent connections. */
  readonly strangers: number;
  readonly known: number;
  /** Time for a stranger to prove that it knows the token, or to be done. */
  readonly strangerMs: number;
  readonly strangerBytes: number;
}

/**
 * Probes arrive once a second, and every 250 ms from other edge proxies; each ends at once. Clients with the token hold
 * one connection per service, one for all services, and one per log reader; twice as many while leaders change. A
 * handshake or a probe takes less than a kilobyte.
 */
export const admissionLimits: AdmissionLimits = { strangers: 64, known: 256, strangerMs: 5_000, strangerBytes: 16_384 };

/** Poll interval for the bytes that strangers sent, ms: Node.js reads the handshake below this code. */
const pollIntervalMs = 100;

interface Stranger {
  readonly socket: Socket;
  readonly address: string;
  readonly cancelDeadline: CancelTimer;
}

/**
 * Tracks the clients of an edge proxy. Above the limit, a new stranger replaces another: a client with many connections
 * must not block the probes, without which the edge proxy gets no requests.
 */
export class Admission {
  readonly #clock: Clock;
  readonly #limits: AdmissionLimits;
  /** By remote address and port, oldest first. */
  readonly #strangers = new Map<string, Stranger>();
  readonly #known = new Set<string>();
  readonly #sockets = new Set<Socket>();
  readonly #cancelPoll: CancelTimer;

  constructor(clock: Clock, limits: AdmissionLimits = admissionLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#cancelPoll = clock.every(pollIntervalMs, () => this.#checkStrangers());
  }

  enter(socket: Socket): void {
    const id = originOf(socket);
    if (this.#strangers.size >= this.#limits.strangers) mostGreedy([...this.#strangers.values()])?.socket.destroy();
    const cancelDeadline = this.#clock.after(this.#limits.strangerMs, () => socket.destroy());
    this.#strangers.set(id, { socket, address: socket.remoteAddress ?? '', cancelDeadline });
    this.#sockets.add(socket);
    socket.once('close', () => {
      cancelDeadline();
      // Another client may have connected from the same port since.
      if (this.#strangers.get(id)?.socket === socket) this.#strangers.delete(id);
      if (this.#sockets.delete(socket)) this.#known.delete(id);
    });
  }

  /** Registers that a client has proved that it knows the token. Returns false when there are too many such clients. */
  recognise(socket: Socket): boolean {
    const id = originOf(socket);
    const stranger = this.#strangers.get(id);
    if (stranger === undefined || this.#known.size >= this.#limits.known) return false;
    stranger.cancelDeadline();
    this.#strangers.delete(id);
    this.#known.add(id);
    return true;
  }

  close(): void {
    this.#cancelPoll();
    for (const socket of this.#sockets) socket.destroy();
  }

  #checkStrangers(): void {
    for (const { socket } of this.#strangers.values()) if (socket.bytesRead > this.#limits.strangerBytes) socket.destroy();
  }
}

/** Identifies a connection. Equal for a socket and for the TLS socket on top of it. */
function originOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** The oldest connection of the address with the most connections. Pure. */
export function mostGreedy<Connection extends { readonly address: string }>(strangers: readonly Connection[]): Connection | undefined {
  const counts = new Map<string, number>();
  for (const { address } of strangers) counts.set(address, (counts.get(address) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return strangers.find(({ address }) => counts.get(address) === most);
}
