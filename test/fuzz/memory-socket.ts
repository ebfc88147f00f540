import { Duplex } from 'node:stream';

/** A connection without a socket: a test puts bytes in, and written bytes are discarded. */
export class MemorySocket extends Duplex {
  constructor() {
    // A high limit avoids backpressure, whose timing the comparison ignores.
    super({ highWaterMark: 16_777_216, emitClose: true });
  }

  override _read(): void {
    // The test pushes bytes from outside.
  }

  override _write(_bytes: unknown, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    done();
  }

  /** Methods that `node:http` calls on a socket. */
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
