import type { Socket } from 'node:net';
import {
  type StreamHandle,
  type WriteRequest,
  bytesReadOrError,
  endOfFile,
  newShutdownRequest,
  newWriteRequest,
  takeHandle,
  wasAsync,
} from './node-internals.ts';
import { releaseBuffer } from './message-writer.ts';
import type { Transport, TransportUser } from './transport.ts';

interface Batched {
  /** Must not throw. */
  sendNow(): void;
}

let due: Batched[] = [];

/**
 * Sends the collected bytes once all readable sockets have been read. Writing at once would wake the peer for each
 * piece and yield the processor to it. Reading first costs a quarter less under load, and nothing without load.
 */
function sendSoon(one: Batched): void {
  due.push(one);
  if (due.length === 1) setImmediate(sendAll);
}

function sendAll(): void {
  const now = due;
  due = [];
  for (const one of now) one.sendNow();
}

/** The read buffer of the thread: each read is processed before the next one happens. */
const readBuffer = Buffer.allocUnsafeSlow(65_536);

/** Beyond this, collected bytes are sent at once. Otherwise a big body would pile up while its next pieces are read. */
const sendAtBytes = 65_536;

/**
 * A TCP connection or Unix socket without Node's stream classes, which halves the cost of a request. All share one read
 * buffer. Writes that the kernel takes at once, as nearly all are, leave no state.
 */
export class HandleTransport implements Transport, Batched {
  readonly remoteAddress: string;
  readonly isSecure = false;
  isPaused = true;
  sends = 0;
  #handle: StreamHandle | undefined;
  #user: TransportUser | undefined;
  /** Read before this transport took over the handle. */
  #early: Buffer | undefined;
  /** Free for the next write. */
  #request: WriteRequest | undefined = newWriteRequest();
  /** Not handed to the kernel yet: text, and the bytes after it. */
  #text = '';
  #parts: Buffer[] = [];
  #collected = 0;
  #isDue = false;
  #pending = 0;
  #isEnding = false;
  #hasPeerEnded = false;
  #isResetting = false;

  /** Takes over a connected socket; the caller must not use the socket after this. */
  constructor(socket: Socket) {
    this.remoteAddress = socket.remoteAddress ?? '';
    const early: unknown = socket.read();
    if (Buffer.isBuffer(early)) this.#early = early;
    const handle = takeHandle(socket);
    socket.removeAllListeners();
    socket.destroy();
    if (handle === undefined) return;
    this.#handle = handle;
    handle.readStop();
    handle.useUserBuffer(readBuffer);
    handle.onread = () => this.#onRead();
  }

  get isBlocked(): boolean {
    return this.#pending > 0;
  }

  start(user: TransportUser): void {
    this.#user = user;
    if (this.#handle === undefined) process.nextTick(() => this.#closed());
    else this.resume();
    if (this.#early === undefined) return;
    const early = this.#early;
    this.#early = undefined;
    process.nextTick(() => this.#user?.received(early));
  }

  text(text: string): void {
    if (this.#handle === undefined) return;
    if (this.#parts.length === 0) this.#text += text;
    else this.#parts.push(Buffer.from(text, 'latin1'));
    this.#collect(text.length);
  }

  bytes(bytes: Buffer): void {
    if (this.#handle === undefined) return;
    this.#parts.push(bytes);
    this.#collect(bytes.length);
  }

  sendNow(): void {
    this.#isDue = false;
    this.#collected = 0;
    const handle = this.#handle;
    if (handle === undefined || this.#parts.length + this.#text.length === 0) return;
    this.sends += 1;
    const request = this.#request ?? newWriteRequest();
    const text = this.#text;
    this.#text = '';
    if (this.#parts.length === 0) {
      this.#written(handle.writeLatin1String(request, text), request, undefined);
      return;
    }
    const parts = this.#parts;
    this.#parts = [];
    if (text !== '') parts.unshift(Buffer.from(text, 'latin1'));
    this.#written(handle.writev(request, parts, true), request, parts);
  }

  #collect(bytes: number): void {
    this.#collected += bytes;
    if (this.#collected >= sendAtBytes) this.sendNow();
    else if (!this.#isDue) {
      this.#isDue = true;
      sendSoon(this);
    }
  }

  probe(): void {
    const handle = this.#handle;
    if (handle === undefined || this.#pending > 0) return;
    const request = this.#request ?? newWriteRequest();
    // Sends nothing, but makes the kernel check the state of the connection.
    this.#written(handle.writeLatin1String(request, ''), request, undefined);
  }

  pause(): void {
    if (this.isPaused) return;
    this.isPaused = true;
    this.#handle?.readStop();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    if (this.#handle !== undefined && this.#handle.readStart() !== 0) this.destroy();
  }

  end(onSent?: () => void): void {
    if (this.#handle === undefined || this.#isEnding) return;
    this.sendNow();
    // `sendNow` may just have found that the peer is gone.
    if (this.#handle === undefined) return;
    this.#isEnding = true;
    const request = newShutdownRequest();
    request.oncomplete = () => {
      onSent?.();
      if (this.#hasPeerEnded) this.destroy();
    };
    // Such as ENOTCONN: the peer is gone already.
    if (this.#handle.shutdown(request) !== 0) this.destroy();
  }

  reset(): void {
    this.sendNow();
    this.#isResetting = true;
    if (this.#pending > 0) return;
    const handle = this.#handle;
    // A socket that is shutting down, or is not TCP, can only be closed normally.
    if (handle?.reset === undefined || this.#isEnding) return this.destroy();
    this.#handle = undefined;
    if (handle.reset(() => this.#closed()) !== 0) handle.close(() => this.#closed());
    return undefined;
  }

  destroy(): void {
    const handle = this.#handle;
    if (handle === undefined) return;
    this.#handle = undefined;
    handle.close(() => this.#closed());
  }

  #onRead(): void {
    const count = bytesReadOrError();
    const user = this.#user;
    if (count === 0 || this.#handle === undefined || user === undefined) return;
    if (count > 0) user.received(readBuffer.subarray(0, count));
    else if (count === endOfFile) {
      this.#hasPeerEnded = true;
      this.pause();
      user.ended();
      if (this.#isEnding && this.#pending === 0) this.destroy();
    } else this.destroy();
  }

  #written(error: number, request: WriteRequest, bytes: readonly Uint8Array[] | undefined): void {
    if (error !== 0) return this.destroy();
    if (!wasAsync()) {
      this.#request = request;
      bytes?.forEach(releaseBuffer);
      return undefined;
    }
    this.#request = undefined;
    this.#pending += 1;
    request.buffer = bytes;
    request.oncomplete = (status) => this.#sent(status, request);
    return undefined;
  }

  #sent(status: number, request: WriteRequest): void {
    // Only fully sent memory is reused: the kernel may still be reading from a failed write's memory.
    if (status === 0) request.buffer?.forEach(releaseBuffer);
    request.buffer = undefined;
    request.oncomplete = undefined;
    this.#pending -= 1;
    if (this.#handle === undefined) return undefined;
    if (status !== 0) return this.destroy();
    if (this.#pending > 0) return undefined;
    return this.#isResetting ? this.reset() : this.#user?.drained();
  }

  #closed(): void {
    const user = this.#user;
    this.#user = undefined;
    user?.closed();
  }
}
