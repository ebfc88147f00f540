import type { Socket } from 'node:net';
import type { CancelTimer, Clock } from '../../shared/clock.ts';

/** How much whoever connects to a balancer host may take of it. Strangers are those that have not shown yet that they know the token, and probes. */
export interface AdmissionLimits {
  /** At a time; less than there may be of those that know the token. */
  readonly strangers: number;
  readonly known: number;
  /** A stranger has to show that it knows the token, or to be done, within so long, ms. */
  readonly strangerMs: number;
  /** A stranger sends no more than this. */
  readonly strangerBytes: number;
}

/**
 * Probes come once a second and from other hosts each 250 ms, and are gone at once. Of those that know the token there is one connection for each service and
 * one for all; twice that while one leader follows another; and one for each who reads logs. A handshake and a probe take less than a kilobyte.
 */
export const admissionLimits: AdmissionLimits = { strangers: 64, known: 256, strangerMs: 5_000, strangerBytes: 16_384 };

/** How often it is looked how much strangers have sent, ms: the handshake is read below us. */
const lookEveryMs = 100;

interface Stranger {
  readonly socket: Socket;
  readonly address: string;
  readonly cancelDeadline: CancelTimer;
}

/**
 * Who is connected to a balancer host. When there are too many strangers, a new one takes the place of another: whoever opens many connections must not keep
 * probes away, on which it depends whether this host gets requests.
 */
export class Admission {
  readonly #clock: Clock;
  readonly #limits: AdmissionLimits;
  /** By where they come from, the first one first. */
  readonly #strangers = new Map<string, Stranger>();
  readonly #known = new Set<string>();
  readonly #sockets = new Set<Socket>();
  readonly #cancelLook: CancelTimer;

  constructor(clock: Clock, limits: AdmissionLimits = admissionLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#cancelLook = clock.every(lookEveryMs, () => this.#look());
  }

  /** Takes note of a connection that has just been opened. */
  enter(socket: Socket): void {
    const id = originOf(socket);
    if (this.#strangers.size >= this.#limits.strangers) mostGreedy([...this.#strangers.values()])?.socket.destroy();
    const cancelDeadline = this.#clock.after(this.#limits.strangerMs, () => socket.destroy());
    this.#strangers.set(id, { socket, address: socket.remoteAddress ?? '', cancelDeadline });
    this.#sockets.add(socket);
    socket.once('close', () => {
      cancelDeadline();
      // Somebody else may have come from the same port since.
      if (this.#strangers.get(id)?.socket === socket) this.#strangers.delete(id);
      if (this.#sockets.delete(socket)) this.#known.delete(id);
    });
  }

  /** Takes note that who speaks over a connection has shown that it knows the token; false when there are too many of those. */
  recognise(socket: Socket): boolean {
    const id = originOf(socket);
    const stranger = this.#strangers.get(id);
    if (stranger === undefined || this.#known.size >= this.#limits.known) return false;
    stranger.cancelDeadline();
    this.#strangers.delete(id);
    this.#known.add(id);
    return true;
  }

  /** Cuts all connections. */
  close(): void {
    this.#cancelLook();
    for (const socket of this.#sockets) socket.destroy();
  }

  #look(): void {
    for (const { socket } of this.#strangers.values()) if (socket.bytesRead > this.#limits.strangerBytes) socket.destroy();
  }
}

/** The same for a connection and for the TLS that is spoken over it. */
function originOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Of the address with the most connections, the one that has been there for longest. Pure. */
export function mostGreedy<Connection extends { readonly address: string }>(strangers: readonly Connection[]): Connection | undefined {
  const counts = new Map<string, number>();
  for (const { address } of strangers) counts.set(address, (counts.get(address) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return strangers.find(({ address }) => counts.get(address) === most);
}
