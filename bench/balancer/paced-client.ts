import { connect, type Socket } from 'node:net';
import { quantile } from '../../test/support/figures.ts';

/**
 * Sends requests at a constant rate over kept-alive connections, independent of earlier replies, and prints reply
 * times.
 *
 * The wait for a free connection counts, so a stall is not hidden by the requests that it delays. A delay of this
 * program's own timer does not count.
 *
 * Arguments: port, requests per second, seconds.
 */
const [port = 0, perSecond = 0, seconds = 0] = process.argv.slice(2).map(Number);
const connections = 32;
/** Reply times of these requests are not counted. */
const warmUpRequests = perSecond / 2;
const total = perSecond * seconds + warmUpRequests;
const request =
  'GET /ping HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: application/json\r\nUser-Agent: OpenAI/Python 1.99.1\r\nAuthorization: Bearer sk-example-0123456789abcdef\r\n\r\n';
/** The reply ends with this text: it is the body of `/ping`. */
const endOfReply = '{"status":"ok"}';

/** The output, as JSON. */
export interface PacedResult {
  /** Includes the warm-up requests. */
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const idle: Connection[] = [];
/** Arrival times of the requests that wait for a free connection. */
const backlog: number[] = [];
const times: number[] = [];
let sent = 0;
let answered = 0;

class Connection {
  readonly #socket: Socket;
  #askedAt = 0;
  #text = '';

  constructor(onConnect: (connection: Connection) => void) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true }, () => onConnect(this));
    this.#socket.on('data', (bytes) => this.#onData(bytes));
    this.#socket.on('error', (error) => fail(error.message));
    this.#socket.on('close', () => fail('a connection was closed'));
  }

  send(askedAt: number): void {
    this.#askedAt = askedAt;
    this.#text = '';
    this.#socket.write(request);
  }

  #onData(bytes: Buffer): void {
    this.#text += bytes.toString('latin1');
    if (!this.#text.endsWith(endOfReply)) return;
    if (!this.#text.startsWith('HTTP/1.1 200')) fail(this.#text);
    answered += 1;
    if (answered > warmUpRequests) times.push(performance.now() - this.#askedAt);
    if (answered === total) finish();
    const next = backlog.shift();
    if (next === undefined) idle.push(this);
    else this.send(next);
  }
}

function fail(why: string): never {
  console.error(why);
  process.exit(1);
}

function finish(): void {
  const sorted = Float64Array.from(times).toSorted();
  const result: PacedResult = { requests: total, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
  process.stdout.write(JSON.stringify(result), () => process.exit(0));
}

function pace(startAt: number): void {
  const now = performance.now();
  const due = Math.min(total, Math.floor(((now - startAt) / 1e3) * perSecond));
  for (; sent < due; sent += 1) {
    const connection = idle.pop();
    if (connection === undefined) backlog.push(now);
    else connection.send(now);
  }
  if (sent < total) setTimeout(() => pace(startAt), 1);
}

let connected = 0;
for (let index = 0; index < connections; index += 1) {
  const onConnect = (connection: Connection): void => {
    idle.push(connection);
    connected += 1;
    if (connected === connections) pace(performance.now());
  };
  // The socket's handlers keep a reference until it closes.
  void new Connection(onConnect);
}
