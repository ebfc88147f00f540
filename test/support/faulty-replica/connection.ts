import type { Socket } from 'node:net';
import { machineTime, type Behaviour, type JournalEntry } from './behaviour.ts';
import { RequestReader, type ReadHead } from './request-reader.ts';
import { testRandom } from '../test-random.ts';

/** Callbacks of a connection to its process. */
export interface ReplicaProcess {
  readonly behaviour: Behaviour;
  readonly record: (entry: JournalEntry) => void;
}

const block = Buffer.alloc(65_536, 'x');
const short = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
const half = `HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n${'x'.repeat(50)}`;

/** One connection of the balancer to a faulty replica. */
export class FaultyConnection {
  readonly #socket: Socket;
  readonly #process: ReplicaProcess;
  #request: ReadHead | undefined;

  constructor(socket: Socket, process: ReplicaProcess) {
    this.#socket = socket;
    this.#process = process;
    const reader = new RequestReader({ onHead: (head) => this.#begin(head), onEnd: () => this.#respond(process.behaviour) });
    socket.on('data', (bytes: Buffer) => reader.feed(bytes));
    socket.on('error', () => undefined);
    socket.on('end', () => socket.destroy());
    socket.on('close', () => this.#recordEnd('left'));
  }

  #begin(head: ReadHead): void {
    this.#request = head;
    this.#process.record({ what: 'got', ...head, at: machineTime() });
    if (this.#process.behaviour.type === 'unread') this.#socket.pause();
  }

  /** Only the first record of a request's end counts. */
  #recordEnd(what: 'left' | 'done'): void {
    if (this.#request !== undefined) this.#process.record({ what, ...this.#request, at: machineTime() });
    this.#request = undefined;
  }

  #answer(bytes: Buffer | string): void {
    if (this.#socket.destroyed) return;
    this.#socket.write(bytes);
    this.#recordEnd('done');
  }

  #respond(behaviour: Behaviour): void {
    switch (behaviour.type) {
      case 'answer':
        return this.#answerLater(behaviour.afterMs ?? 0, behaviour.spreadMs ?? 0, behaviour.bytes ?? 2);
      case 'status':
        return this.#answerWithStatus(behaviour.status, behaviour.share ?? 1, behaviour.retryAfterSeconds);
      case 'fickle':
        this.#answer(short);
        if (testRandom() < behaviour.share) setTimeout(() => this.#closeIdle(), testRandom() * behaviour.withinMs);
        return undefined;
      case 'half':
        return this.#answerHalf(behaviour.ending);
      case 'events':
        return this.#sendEvents(behaviour.everyMs, behaviour.count);
      case 'reset':
        this.#socket.resetAndDestroy();
        return undefined;
      case 'close':
        this.#socket.destroy();
        return undefined;
      case 'refuse':
      case 'hang':
      case 'unread':
        return undefined;
    }
  }

  #answerLater(afterMs: number, spreadMs: number, bytes: number): void {
    const waitMs = afterMs - Math.log(1 - testRandom()) * spreadMs;
    const answer = (): void => (bytes === 2 ? this.#answer(short) : this.#answerLong(bytes));
    if (waitMs > 0) setTimeout(answer, waitMs);
    else answer();
  }

  /** As fast as the peer reads it. */
  #answerLong(bytes: number): void {
    this.#socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`);
    let left = bytes;
    const more = (): void => {
      while (left > 0) {
        const part = left < block.length ? block.subarray(0, left) : block;
        left -= part.length;
        if (!this.#socket.write(part) && left > 0) {
          this.#socket.once('drain', more);
          return;
        }
      }
      this.#recordEnd('done');
    };
    more();
  }

  #answerWithStatus(status: number, share: number, retryAfterSeconds: number | undefined): void {
    if (testRandom() >= share) return this.#answer(short);
    const pause = retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`;
    return this.#answer(`HTTP/1.1 ${status} As told\r\n${pause}Content-Length: 0\r\n\r\n`);
  }

  /** The next request may have arrived already: the close leaves it unread, like a server that closes by a timer. */
  #closeIdle(): void {
    if (this.#request === undefined) this.#socket.destroy();
  }

  #answerHalf(ending: 'hang' | 'reset' | 'close'): void {
    this.#socket.write(half);
    if (ending === 'close') this.#socket.end();
    // Written bytes must not be lost with the reset.
    if (ending === 'reset') setTimeout(() => this.#socket.resetAndDestroy(), 30);
  }

  #sendEvents(everyMs: number, count: number): void {
    this.#socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
    let sent = 0;
    const stop = (): void => clearInterval(timer);
    const timer = setInterval(() => {
      const event = `data: ${sent} ${machineTime().toFixed(3)}\n\n`;
      sent += 1;
      this.#socket.write(`${event.length.toString(16)}\r\n${event}\r\n`);
      if (sent < count) return;
      stop();
      this.#socket.off('close', stop);
      this.#answer('0\r\n\r\n');
    }, everyMs);
    this.#socket.once('close', stop);
  }
}
