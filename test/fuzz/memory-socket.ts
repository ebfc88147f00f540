import { Duplex } from 'node:stream';

/** The end of a connection that is no socket: a test puts bytes in, and what is written goes nowhere. */
export class MemorySocket extends Duplex {
  constructor() {
    // Enough that nothing ever waits for room: when bytes are handed on is not what is compared.
    super({ highWaterMark: 16_777_216, emitClose: true });
  }

  override _read(): void {
    // Bytes are put in from outside, as they come.
  }

  override _write(_bytes: unknown, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    done();
  }

  /** What `node:http` calls on a socket. */
  setTimeout(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
