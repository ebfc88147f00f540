import { copyToSend } from './send-buffers.ts';
import type { Transport } from './transport.ts';

/** Bodies up to here travel as text together with their head: one copy and one system call, and no buffer to be made. */
const textBytes = 4_096;

/** Collects the pieces of a message while one read is worked on, and sends them with one system call. Serves one transport. */
export class MessageWriter {
  readonly #transport: Transport;
  /** Latin-1 text that belongs behind the parts. */
  #text = '';
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Latin-1 text: heads and framing. */
  text(text: string): void {
    this.#text += text;
  }

  /** `bytes[from, to)`, a piece of a body as it is. The buffer may be written over after `flush`. */
  bytes(bytes: Buffer, from: number, to: number): void {
    if (to - from <= textBytes) {
      this.#text += bytes.toString('latin1', from, to);
      return;
    }
    this.#putText();
    this.#put(copyToSend(bytes, from, to));
  }

  /** `bytes[from, to)`, a piece of a body as one chunk. */
  chunk(bytes: Buffer, from: number, to: number): void {
    this.#text += `${(to - from).toString(16)}\r\n`;
    this.bytes(bytes, from, to);
    this.#text += '\r\n';
  }

  /** Forgets what was not sent yet. */
  clear(): void {
    this.#text = '';
    // Shortening even an empty list costs its storage.
    if (this.#bytes === 0) return;
    this.#parts.length = 0;
    this.#bytes = 0;
  }

  /** Sends what was collected. False when the peer is slow and the caller should wait until it drained. */
  flush(): boolean {
    if (this.#bytes > 0) {
      this.#putText();
      for (const part of this.#parts) this.#transport.bytes(part);
      this.clear();
    } else if (this.#text !== '') {
      this.#transport.text(this.#text);
      this.#text = '';
    }
    return !this.#transport.isBlocked;
  }

  #putText(): void {
    if (this.#text === '') return;
    this.#put(Buffer.from(this.#text, 'latin1'));
    this.#text = '';
  }

  #put(part: Buffer): void {
    this.#parts.push(part);
    this.#bytes += part.length;
  }
}
