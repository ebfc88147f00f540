import type { Http2Stream } from 'node:http2';

/**
 * Tells the proper end of a message's body from the end of a stream that was reset without an error code (RST_STREAM with NO_ERROR), which Node
 * announces by the same `end`. Only the first is put behind the data while the stream is still open.
 */
export class EndOfBody {
  #isProper = false;

  /** Must see the stream before its first byte. */
  constructor(stream: Http2Stream) {
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (chunk === null && !stream.closed) this.#isProper = true;
      return push(chunk, encoding);
    };
  }

  /** Once `end` has come: whether everything was received. */
  get isProper(): boolean {
    return this.#isProper;
  }
}
