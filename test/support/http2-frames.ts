import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { waitFor } from './wait-for.ts';

/** Frame types of RFC 9113, section 6. */
export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
/** Flags of frames. */
export const Flag = { endStream: 1, ack: 1, endHeaders: 4 } as const;

/** The client preface. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** One frame. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A number of 32 bits. */
export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** One setting of a SETTINGS frame. */
export function setting(id: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([0, id]), word(value)]);
}

function integer(value: number, prefixBits: number, first: number): Buffer {
  const max = 2 ** prefixBits - 1;
  if (value < max) return Buffer.from([first | value]);
  const bytes = [first | max];
  let rest = value - max;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

const text = (part: string): Buffer => Buffer.concat([integer(part.length, 7, 0), Buffer.from(part, 'latin1')]);

/** A field that is not added to the dynamic table (RFC 7541, section 6.2.2), or is when `isIndexed` (section 6.2.1). */
export function field(name: string, value: string, isIndexed = false): Buffer {
  return Buffer.concat([Buffer.from([isIndexed ? 0x40 : 0]), text(name), text(value)]);
}

/** A field by its index; the newest entry of the dynamic table is 62. */
export function indexed(index: number): Buffer {
  return integer(index, 7, 0x80);
}

/** The fields of every request. */
export function requestFields(path = '/', method = 'GET'): Buffer {
  return Buffer.concat([field(':method', method), field(':scheme', 'https'), field(':authority', 'a.example'), field(':path', path)]);
}

/** A received frame. */
export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A client that sends exactly the given frames, with or without TLS. */
export class FrameClient {
  readonly frames: ReceivedFrame[] = [];
  isClosed = false;
  readonly #socket: Socket;
  #rest = Buffer.alloc(0);

  constructor(port: number, isTls = true) {
    const target = { host: '127.0.0.1', port };
    this.#socket = isTls ? connectTls({ ...target, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : connect(target);
    this.#socket.on('data', (bytes: Buffer) => this.#read(bytes));
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => {
      this.isClosed = true;
    });
    this.send(preface, frame(FrameType.settings, 0, 0));
  }

  send(...frames: readonly Uint8Array[]): this {
    if (!this.isClosed) this.#socket.write(Buffer.concat(frames));
    return this;
  }

  /** Repeats the same bytes until the peer closes, at most this many times, with backpressure. Returns the count. */
  async flood(bytes: Uint8Array, times: number): Promise<number> {
    let sent = 0;
    for (; sent < times && !this.isClosed && this.#socket.writable; sent += 1) {
      const isFree = this.#socket.write(bytes);
      // The answers must be read too; unread answers would be a different attack.
      if (!isFree || sent % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (this.#socket.writableLength > 1_000_000)
        await waitFor('room', () => this.isClosed || this.#socket.writableLength < 100_000, { everyMs: 1 });
    }
    return sent;
  }

  of(type: number): readonly ReceivedFrame[] {
    return this.frames.filter((one) => one.type === type);
  }

  /** Returns the error code of the last GOAWAY frame. */
  get goaway(): number | undefined {
    return this.of(FrameType.goaway).at(-1)?.payload.readUInt32BE(4);
  }

  /** Waits until the connection has ended. */
  async closed(): Promise<void> {
    await waitFor('the connection to be closed', () => this.isClosed, { describe: () => this.frames.slice(-5) });
  }

  /** Ends its side of the connection. */
  end(): void {
    this.#socket.end();
  }

  pause(): void {
    this.#socket.pause();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= 9) {
      const end = 9 + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      const [type = 0, flags = 0] = [this.#rest[3], this.#rest[4]];
      // Answers to floods are numerous and identical.
      if (this.frames.length < 50_000)
        this.frames.push({ type, flags, stream: this.#rest.readUInt32BE(5), payload: this.#rest.subarray(9, end) });
      this.#rest = this.#rest.subarray(end);
    }
  }
}
