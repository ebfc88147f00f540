import { connect } from 'node:net';

/**
 * Reads event streams: holds `STREAMS` connections to a port, each of which requests `/COUNT/GAP` repeatedly. It
 * answers each line on standard input with the counts so far, as one line of JSON.
 *
 * Arguments: port, streams, count, gap in ms.
 */
const [port = 0, streams = 0, count = 0, gapMs = 0] = process.argv.slice(2).map(Number);
/** Connections opened at a time: more would only wait in the proxy's backlog. */
const openAtOnce = 64;

/** The counts so far, written as one line of JSON. */
export interface StreamCounts {
  /** Open streams whose head has arrived. */
  open: number;
  events: number;
  /** Reads that brought events: equals the number of events when each arrived alone. */
  reads: number;
  /** Streams that ended early, and refused connections. */
  failed: number;
  /** The output of the first failed stream before it broke. */
  failure: string;
  /** The slowest stream so far: ms from the request to the first byte. */
  slowestHeadMs: number;
}

const counts: StreamCounts = { open: 0, events: 0, reads: 0, failed: 0, failure: '', slowestHeadMs: 0 };
const request = `GET /${count}/${gapMs} HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: text/event-stream\r\nAuthorization: Bearer sk-example-0123456789abcdef\r\n\r\n`;
const endOfStream = '\r\n0\r\n\r\n';
let begun = 0;

function readStream(): void {
  begun += 1;
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  let isOpen = false;
  let askedAt = performance.now();
  let tail = '';
  let firstBytes = 'nothing';
  socket.on('connect', () => socket.write(request));
  socket.on('data', (bytes) => {
    if (!isOpen) {
      isOpen = true;
      firstBytes = bytes.toString('latin1');
      counts.open += 1;
      counts.slowestHeadMs = Math.max(counts.slowestHeadMs, performance.now() - askedAt);
      if (begun < streams) readStream();
    }
    countEvents(bytes);
    tail = (tail + bytes.toString('latin1', Math.max(0, bytes.length - endOfStream.length))).slice(-endOfStream.length);
    if (tail !== endOfStream) return;
    askedAt = performance.now();
    tail = '';
    socket.write(request);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    if (counts.failed === 0) counts.failure = firstBytes;
    if (isOpen) counts.open -= 1;
    counts.failed += 1;
  });
}

function countEvents(bytes: Buffer): void {
  const before = counts.events;
  for (let at = bytes.indexOf('\n\n'); at >= 0; at = bytes.indexOf('\n\n', at + 2)) counts.events += 1;
  if (counts.events > before) counts.reads += 1;
}

for (let stream = 0; stream < Math.min(streams, openAtOnce); stream += 1) readStream();
process.stdin.on('data', () => console.log(JSON.stringify(counts)));
