import type { Socket } from 'node:net';

/** Up to here copying into one buffer is cheaper than handing the kernel a list. */
const mergeBytes = 16_384;

/** A part of a buffer, without the cost of a view on it, or text. */
interface Part {
  readonly content: string | Buffer;
  readonly from: number;
  readonly to: number;
}

/** Collects the pieces of a message while one read is worked on, and sends them with one system call. Serves one socket. */
export class MessageWriter {
  readonly #socket: Socket;
  readonly #parts: Part[] = [];
  /** Latin-1 text that belongs behind the parts. */
  #text = '';
  #bytes = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Latin-1 text: heads and framing. */
  text(text: string): void {
    this.#text += text;
    this.#bytes += text.length;
  }

  /** `bytes[from, to)`, a piece of a body as it is; not copied unless small. */
  bytes(bytes: Buffer, from: number, to: number): void {
    this.#putText();
    this.#parts.push({ content: bytes, from, to });
    this.#bytes += to - from;
  }

  /** `bytes[from, to)`, a piece of a body as one chunk. */
  chunk(bytes: Buffer, from: number, to: number): void {
    this.text(`${(to - from).toString(16)}\r\n`);
    this.bytes(bytes, from, to);
    this.text('\r\n');
  }

  /** Forgets what was not sent yet. */
  clear(): void {
    // Shortening even an empty list costs its storage.
    if (this.#parts.length > 0) this.#parts.length = 0;
    this.#text = '';
    this.#bytes = 0;
  }

  /** Sends what was collected. False when the peer is slow and the caller should wait for `drain`. */
  flush(): boolean {
    if (this.#bytes > 0) {
      this.#send();
      this.clear();
    }
    return !this.#socket.writableNeedDrain;
  }

  #putText(): void {
    if (this.#text === '') return;
    this.#parts.push({ content: this.#text, from: 0, to: this.#text.length });
    this.#text = '';
  }

  #send(): void {
    if (this.#parts.length === 0) {
      this.#socket.write(this.#text, 'latin1');
      return;
    }
    this.#putText();
    const [first] = this.#parts;
    if (first !== undefined && this.#parts.length === 1) this.#write(first);
    else if (this.#bytes <= mergeBytes) this.#socket.write(this.#merged());
    else {
      this.#socket.cork();
      for (const part of this.#parts) this.#write(part);
      this.#socket.uncork();
    }
  }

  #write({ content, from, to }: Part): void {
    if (typeof content === 'string') this.#socket.write(content, 'latin1');
    else this.#socket.write(from === 0 && to === content.length ? content : content.subarray(from, to));
  }

  #merged(): Buffer {
    const merged = Buffer.allocUnsafe(this.#bytes);
    let at = 0;
    for (const { content, from, to } of this.#parts) {
      if (typeof content === 'string') at += merged.write(content, at, 'latin1');
      else at += content.copy(merged, at, from, to);
    }
    return merged;
  }
}
