import type { Transport } from './transport.ts';

/** Bodies up to this size are sent as text together with their head: one copy, one system call, and no new buffer. */
const textBytes = 4_096;

/** Collects the pieces of a message during one read, and sends them with one system call. One per transport. */
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

  /** `bytes[from, to)`, a piece of a body as it is. The buffer may be overwritten after `flush`. */
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

  clear(): void {
    this.#text = '';
    // Truncating even an empty list costs its storage.
    if (this.#bytes === 0) return;
    this.#parts.length = 0;
    this.#bytes = 0;
  }

  /** Sends the collected bytes. False when the peer is slow and the caller should wait until `drained`. */
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

/** No read is larger. */
const blockBytes = 65_536;
/** Smaller pieces get their own memory: a whole block would be wasted while a slow peer makes it wait. */
const leastBytes = 32_768;
/** 2 MiB per thread: the blocks in use at one moment on a busy endpoint, as nearly all return before the next read. */
const maxIdleBlocks = 32;

const idle: ArrayBuffer[] = [];
const ours = new WeakSet<ArrayBufferLike>();

/**
 * Copies into memory that is reused after `releaseBuffer`. A new buffer for each large read would cost more than the
 * copy: the system provides fresh pages, and the collector must free them.
 */
export function copyToSend(bytes: Buffer, from: number, to: number): Buffer {
  const length = to - from;
  if (length < leastBytes || length > blockBytes) return Buffer.from(bytes.subarray(from, to));
  const memory = idle.pop() ?? newMemory();
  const copy = Buffer.from(memory, 0, length);
  bytes.copy(copy, 0, from, to);
  return copy;
}

/** The bytes have been sent: their memory may be reused. Does nothing for other buffers. */
export function releaseBuffer({ buffer }: Uint8Array): void {
  if (idle.length < maxIdleBlocks && buffer instanceof ArrayBuffer && ours.has(buffer)) idle.push(buffer);
}

function newMemory(): ArrayBuffer {
  const memory = new ArrayBuffer(blockBytes);
  ours.add(memory);
  return memory;
}
