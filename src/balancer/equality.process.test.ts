import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Random } from '../shared/random.ts';
import { aBalancerReplica, withBalancer } from '../../test/support/balancer.ts';
import { RawClient, rawReplica, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { readRequests, readResponse } from '../../test/support/http1-events.ts';
import { testRandom } from '../../test/support/test-random.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { defaultHeadLimits } from './http1/limits.ts';
import { RequestParser } from './http1/request-parser.ts';
import { ResponseParser } from './http1/response-parser.ts';

const exchanges = 500;

/** One generated exchange: the client's request and the replica's answer, both as bytes on the wire. */
interface Exchange {
  readonly method: string;
  readonly request: string;
  /** Whether the client sends the body only after a 100 (Continue). */
  readonly expectsContinue: boolean;
  readonly response: string;
}

const oneOf = <Value>(random: Random, values: readonly [Value, ...Value[]]): Value =>
  values[Math.floor(random() * values.length)] ?? values[0];

function noise(random: Random, maxLength: number): string {
  const length = Math.floor(random() ** 3 * maxLength);
  return Array.from({ length }, () => String.fromCharCode(Math.floor(random() * 256))).join('');
}

/** Mostly short, at times long enough to take many reads and to reach every buffer's limit. */
function content(random: Random, maxLength: number): string {
  return random() < 0.03 ? noise(random, 8_000).padEnd(1_000, '\r\n').repeat(300) : noise(random, maxLength);
}

function oddFields(random: Random): string {
  const all = [
    'X-Dup: 1\r\n',
    'x-dup: 2\r\n',
    'X-dUp:3\r\n',
    'X-Empty:\r\n',
    'x-obs: \u00e4\u00ff\r\n',
    'X-Space:   a  b \t\r\n',
    'ETag: "x"\r\n',
  ];
  return all.filter(() => random() < 0.5).join('');
}

function chunked(random: Random, body: string): string {
  let out = '';
  for (let at = 0; at < body.length;) {
    const size = Math.min(body.length - at, 1 + Math.floor(random() * 5_000));
    // The balancer refuses extensions of 256 bytes or more.
    const extension = at < 20_000 ? oneOf(random, ['', '', ';ext="v"']) : '';
    out += `${oneOf(random, ['', '0', '000'])}${size.toString(16)}${extension}\r\n${body.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${out}0\r\n${oneOf(random, ['', 'X-Trailer: 1\r\n', 'X-Trailer: 1\r\nx-trailer: 2\r\n'])}\r\n`;
}

function framed(random: Random, fields: string, body: string): string {
  return random() < 0.5
    ? `${fields}Content-Length: ${body.length}\r\n\r\n${body}`
    : `${fields}Transfer-Encoding: chunked\r\n\r\n${chunked(random, body)}`;
}

function generate(random: Random): Exchange {
  const method = oneOf(random, ['GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'REPORT']);
  const path = oneOf(random, ['/', '/a%2Fb?c=d&e', '//x/../y', '/?', '/%00', "/a;b='c'*~"]);
  const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method);
  const expectsContinue = hasBody && random() < 0.15;
  const requestFields = `Host: h:1\r\n${oddFields(random)}${expectsContinue ? 'Expect: 100-continue\r\n' : ''}`;
  const rest = hasBody ? framed(random, requestFields, content(random, 100_000)) : `${requestFields}\r\n`;
  const request = `${method} ${path} HTTP/1.1\r\n${rest}`;
  return { method, request, expectsContinue, response: generateResponse(random, method) };
}

function generateResponse(random: Random, method: string): string {
  const status = oneOf(random, [200, 200, 200, 201, 204, 304, 404, 418, 500, 503]);
  const interim = random() < 0.1 ? 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' : '';
  const first = `${interim}HTTP/1.1 ${status} ${oneOf(random, ['OK', '', 'Odd reason: (yes)'])}\r\n`;
  const fields = `${oddFields(random)}Set-Cookie: a=1\r\nset-cookie: b=2\r\n`;
  if (status === 204) return `${first}${fields}\r\n`;
  if (method === 'HEAD' || status === 304) return `${first}${fields}Content-Length: 123\r\n\r\n`;
  if (random() < 0.2) {
    const zipped = gzipSync(noise(random, 50_000)).toString('latin1');
    return `${first}${framed(random, `${fields}Content-Encoding: gzip\r\n`, zipped)}`;
  }
  return first + framed(random, fields, content(random, 200_000));
}

/** The empty line that ends a head, and the offset of the body. */
const headEnd = '\r\n\r\n';
const bodyStart = (text: string): number => text.indexOf(headEnd) + headEnd.length;

/**
 * The lines that a head must keep byte for byte and in order, without white space around values. Hop lines
 * (`Connection`, and `Transfer-Encoding`, which is compared separately) and the balancer's own lines are left out.
 */
function keptLines(text: string): readonly string[] {
  const ofTheHop = /^(?:connection|transfer-encoding|x-request-id|x-svc-[^:]*|x-forwarded-[^:]*):/i;
  const lines = text.slice(0, text.indexOf(headEnd)).split('\r\n');
  return lines.filter((line) => !ofTheHop.test(line)).map((line) => line.replace(/^([^:]*):[ \t]*(.*?)[ \t]*$/s, '$1: $2'));
}

const isChunked = (text: string): boolean => /\r\ntransfer-encoding: chunked\r\n/i.test(text.slice(0, bodyStart(text)));

/** The interim responses, the final one and its parts. */
function meaningOfResponse(text: string, method: string): unknown {
  const interim: (readonly string[])[] = [];
  let rest = text;
  while (rest.startsWith('HTTP/1.1 1')) {
    interim.push(keptLines(rest));
    rest = rest.slice(bodyStart(rest));
  }
  const [message] = readResponse(text, [], method, false).messages;
  const { body, trailers, isComplete } = message ?? {};
  return { interim, head: keptLines(rest), isChunked: isChunked(rest), body, trailers, isComplete };
}

function meaningOfRequest(text: string): unknown {
  const [message] = readRequests(text).messages;
  const { body, trailers, isComplete } = message ?? {};
  return { head: keptLines(text), isChunked: isChunked(text), body, trailers, isComplete };
}

const ignore = (): void => undefined;

/** The bytes that arrived at the replica. */
interface Arrivals {
  count: number;
  /** The newest request, as bytes on the wire. */
  last: string;
}

/**
 * A replica that answers each request with the current result of `answer`. It sends 100 (Continue) to clients that ask
 * for it.
 */
function playingReplica(answer: () => string, arrived: Arrivals): Promise<FakeReplica> {
  const connections = new WeakMap<object, (bytes: Buffer) => void>();
  return rawReplica((socket, _, bytes) => {
    const read = connections.get(socket) ?? requestReader(socket, answer, arrived);
    connections.set(socket, read);
    read(bytes);
  });
}

/** Parses each piece as it arrives and drops finished requests: all of them together are far larger than one. */
function requestReader(socket: Socket, answer: () => string, arrived: Arrivals): (bytes: Buffer) => void {
  let pieces: Buffer[] = [];
  let isComplete = false;
  const parser = new RequestParser(
    {
      requestHead: (head) => {
        if (head.expectsContinue) socket.write(continueResponse);
      },
      body: ignore,
      requestEnd: () => {
        isComplete = true;
      },
      requestFault: ignore,
    },
    defaultHeadLimits,
  );
  return (bytes) => {
    pieces.push(bytes);
    // One request at a time is sent, so no bytes can follow it.
    let at = 0;
    while (at < bytes.length) at = parser.feed(bytes, at);
    if (!isComplete) return;
    isComplete = false;
    arrived.count += 1;
    arrived.last = Buffer.concat(pieces).toString('latin1');
    pieces = [];
    socket.write(answer(), 'latin1');
  };
}

/** Reports when the response to a request was read to its end. */
class ResponseWatch {
  readonly #parser = new ResponseParser(defaultHeadLimits);
  #isOver = false;

  constructor(client: RawClient) {
    client.socket.on('data', (bytes: Buffer) => this.#parser.feed(bytes, 0));
  }

  begin(method: string): void {
    this.#isOver = false;
    const over = (): void => {
      this.#isOver = true;
    };
    this.#parser.begin(method, false, {
      responseInterim: ignore,
      responseHead: ignore,
      body: ignore,
      responseEnd: over,
      responseFault: over,
    });
  }

  over(): Promise<true | undefined> {
    return waitFor('the end of the response', () => this.#isOver || undefined, { everyMs: 1 });
  }
}

const continueResponse = 'HTTP/1.1 100 Continue\r\n\r\n';

/** Sends a request like a client that waits for 100 (Continue). */
async function sendTo(client: RawClient, { request, expectsContinue }: Exchange): Promise<void> {
  if (!expectsContinue) {
    client.send(request);
    return;
  }
  client.send(request.slice(0, bodyStart(request)));
  await client.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
  client.send(request.slice(bodyStart(request)));
}

test(`${exchanges} generated exchanges over kept connections are equal with and without the balancer`, async () => {
  let response = '';
  const arrived: Arrivals = { count: 0, last: '' };
  await withReplicas([playingReplica(() => response, arrived)], async (replica) => {
    if (replica === undefined) return;
    await withBalancer([aBalancerReplica(replica.port)], async (balancer) => {
      let client = new RawClient(balancer.port);
      let watch = new ResponseWatch(client);
      for (let turn = 0; turn < exchanges; turn += 1) {
        const exchange = generate(testRandom);
        const { method, request, expectsContinue } = exchange;
        response = exchange.response;
        client.received = '';
        watch.begin(method);
        await sendTo(client, exchange);
        await watch.over();
        const context = `exchange ${turn}`;
        const direct = (expectsContinue ? continueResponse : '') + response;
        const ours = { where: context, response: meaningOfResponse(client.received, method), request: meaningOfRequest(arrived.last) };
        expect(ours).toEqual({ where: context, response: meaningOfResponse(direct, method), request: meaningOfRequest(request) });
        if (client.ended === undefined) continue;
        client = new RawClient(balancer.port);
        watch = new ResponseWatch(client);
      }
      expect(arrived.count).toBe(exchanges);
      client.destroy();
    });
  });
});
