import type { Socket } from 'node:net';

/** Up to here copying into one buffer is cheaper than handing the kernel a list. */
const mergeBytes = 16_384;

/** Collects the pieces of a message while one read is worked on, and sends them with one system call. Serves one socket. */
export class MessageWriter {
  readonly #socket: Socket;
  readonly #parts: (string | Buffer)[] = [];
  #bytes = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Latin-1 text: heads and framing. */
  text(text: string): void {
    const last = this.#parts.length - 1;
    const before = this.#parts[last];
    if (typeof before === 'string') this.#parts[last] = before + text;
    else this.#parts.push(text);
    this.#bytes += text.length;
  }

  /** A piece of a body as it is; not copied unless small. */
  bytes(bytes: Buffer): void {
    this.#parts.push(bytes);
    this.#bytes += bytes.length;
  }

  /** A piece of a body as one chunk. */
  chunk(bytes: Buffer): void {
    this.text(`${bytes.length.toString(16)}\r\n`);
    this.bytes(bytes);
    this.text('\r\n');
  }

  /** Forgets what was not sent yet. */
  clear(): void {
    this.#parts.length = 0;
    this.#bytes = 0;
  }

  /** Sends what was collected. False when the peer is slow and the caller should wait for `drain`. */
  flush(): boolean {
    if (this.#parts.length > 0) {
      this.#send();
      this.clear();
    }
    return !this.#socket.writableNeedDrain;
  }

  #send(): void {
    const [first] = this.#parts;
    if (first !== undefined && this.#parts.length === 1) this.#write(first);
    else if (this.#bytes <= mergeBytes) this.#socket.write(this.#merged());
    else {
      this.#socket.cork();
      for (const part of this.#parts) this.#write(part);
      this.#socket.uncork();
    }
  }

  #write(part: string | Buffer): void {
    if (typeof part === 'string') this.#socket.write(part, 'latin1');
    else this.#socket.write(part);
  }

  #merged(): Buffer {
    const merged = Buffer.allocUnsafe(this.#bytes);
    let at = 0;
    for (const part of this.#parts) {
      if (typeof part === 'string') at += merged.write(part, at, 'latin1');
      else {
        merged.set(part, at);
        at += part.length;
      }
    }
    return merged;
  }
}
