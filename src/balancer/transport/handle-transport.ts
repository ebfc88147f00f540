import type { Socket } from 'node:net';
import { bytesReadOrError, endOfFile, newShutdownRequest, newWriteRequest, takeHandle, wasAsync } from './node-internals.ts';
import type { StreamHandle, WriteRequest } from './node-internals.ts';
import { giveBack } from './send-buffers.ts';
import type { Transport, TransportUser } from './transport.ts';
import { sendSoon, type Batched } from './write-batch.ts';

/** Every read of the thread goes here: it is worked on before the next one happens. */
const readBuffer = Buffer.allocUnsafeSlow(65_536);

/** So much is not held back any longer, so that a big body does not pile up while its next pieces are read. */
const sendAtBytes = 65_536;

/**
 * A TCP connection or Unix socket without Node's stream classes: reads come in one buffer that all connections share, and writes that the kernel
 * takes at once, as nearly all are, leave no trace. That halves what a request costs.
 */
export class HandleTransport implements Transport, Batched {
  readonly remoteAddress: string;
  readonly isSecure = false;
  isPaused = true;
  sends = 0;
  #handle: StreamHandle | undefined;
  #user: TransportUser | undefined;
  /** Read before the handle was taken over. */
  #early: Buffer | undefined;
  /** Free for the next write. */
  #request: WriteRequest | undefined = newWriteRequest();
  /** Written, but not handed to the kernel yet: text, and what comes behind it. */
  #text = '';
  #parts: Buffer[] = [];
  #collected = 0;
  #isDue = false;
  /** Writes that go on in the background. */
  #pending = 0;
  #isEnding = false;
  #hasPeerEnded = false;
  #isResetting = false;

  /** Takes over a connected socket, which must not be used any more. */
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
    // Nothing is sent, but the kernel looks at the state of the connection.
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
    // The peer may have been found gone just now.
    if (this.#handle === undefined) return;
    this.#isEnding = true;
    const request = newShutdownRequest();
    request.oncomplete = () => {
      onSent?.();
      if (this.#hasPeerEnded) this.destroy();
    };
    // Such as ENOTCONN: the peer has gone already.
    if (this.#handle.shutdown(request) !== 0) this.destroy();
  }

  reset(): void {
    this.sendNow();
    this.#isResetting = true;
    if (this.#pending > 0) return;
    const handle = this.#handle;
    // A socket that is shutting down, or is not TCP, has no other end than the plain one.
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
      bytes?.forEach(giveBack);
      return undefined;
    }
    this.#request = undefined;
    this.#pending += 1;
    request.buffer = bytes;
    request.oncomplete = (status) => this.#sent(status, request);
    return undefined;
  }

  #sent(status: number, request: WriteRequest): void {
    // Only what has left whole: the kernel may still be reading from what failed.
    if (status === 0) request.buffer?.forEach(giveBack);
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
