import { connect } from 'node:net';
import { machineTime } from './faulty-replica/behaviour.ts';

/** A client's observations of one event stream of a faulty replica. Times are ms. */
export interface SeenStream {
  /** From the request to the first event. */
  readonly firstEventMs: number;
  /** The numbers of the events, in order of arrival. */
  readonly numbers: readonly number[];
  /** From the sending of each event to its arrival. */
  readonly lags: readonly number[];
  /** Reads in which at least one event came. */
  readonly reads: number;
  /** Whether the body ended properly. */
  readonly isComplete: boolean;
}

const lastChunk = '0\r\n\r\n';
const eventPattern = /data: (\d+) ([\d.]+)\n\n/g;

/** Requests an event stream over a new connection and reads it to the end. */
export function readEvents(port: number): Promise<SeenStream> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  const startedAt = machineTime();
  const numbers: number[] = [];
  const lags: number[] = [];
  let firstEventMs = Number.NaN;
  let reads = 0;
  let tail = '';
  let rest = '';
  socket.write('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    const now = machineTime();
    const before = numbers.length;
    rest += text;
    for (const { 1: number, 2: sentAt, index, 0: event } of rest.matchAll(eventPattern)) {
      numbers.push(Number(number));
      lags.push(now - Number(sentAt));
      tail = rest.slice(index + event.length);
    }
    if (rest.endsWith(lastChunk)) socket.destroy();
    if (numbers.length === before) return;
    if (before === 0) firstEventMs = now - startedAt;
    reads += 1;
    rest = tail;
    if (rest.endsWith(lastChunk)) socket.destroy();
  });
  return new Promise((resolve) => {
    socket.on('error', () => undefined);
    socket.on('close', () => resolve({ firstEventMs, numbers, lags, reads, isComplete: rest.endsWith(lastChunk) }));
  });
}
