import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { seededRandom, type Random } from '../../src/shared/random.ts';
import { aBalancerReplica, withBalancer } from '../../test/support/balancer.ts';
import { RawClient, rawReplica, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { fieldsOf, readRequests, readResponse } from '../../test/support/http1-events.ts';

const exchanges = 200;

/** One generated exchange: what a client sends and what the replica answers, both as they stand on the wire. */
interface Exchange {
  readonly method: string;
  readonly request: string;
  readonly response: string;
}

const oneOf = <Value>(random: Random, values: readonly [Value, ...Value[]]): Value =>
  values[Math.floor(random() * values.length)] ?? values[0];

function noise(random: Random, maxLength: number): string {
  const length = Math.floor(random() ** 3 * maxLength);
  return Array.from({ length }, () => String.fromCharCode(Math.floor(random() * 256))).join('');
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
    out += `${oneOf(random, ['', '0', '000'])}${size.toString(16)}${oneOf(random, ['', '', ';ext="v"'])}\r\n${body.slice(at, at + size)}\r\n`;
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
  const requestFields = `Host: h:1\r\n${oddFields(random)}`;
  const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method);
  const rest = hasBody ? framed(random, requestFields, noise(random, 100_000)) : `${requestFields}\r\n`;
  const request = `${method} ${path} HTTP/1.1\r\n${rest}`;
  return { method, request, response: generateResponse(random, method) };
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
  return first + framed(random, fields, noise(random, 200_000));
}

/** Of the connection or added on the way, and so not part of the message that must stay as it is. */
const ofTheHop = /^(connection|transfer-encoding|x-request-id|x-svc-.*|x-forwarded-.*|content-length)$/i;

function endToEnd(lines: readonly string[] = []): readonly string[] {
  return lines.filter((line) => !ofTheHop.test(line.slice(0, line.indexOf(':'))));
}

function meaningOfResponse(text: string, method: string): unknown {
  const [message] = readResponse(text, [], method, false).messages;
  return {
    interim: message?.interim.map((interim) => [interim.status, endToEnd(fieldsOf(interim))]),
    status: message?.head?.status,
    reason: message?.head?.reason,
    fields: endToEnd(message?.fields),
    body: message?.body,
    trailers: message?.trailers,
    isComplete: message?.isComplete,
  };
}

function meaningOfRequest(text: string): unknown {
  const [message] = readRequests(text).messages;
  const { head, fields, body, trailers, isComplete } = message ?? {};
  return { method: head?.method, path: head?.path, host: head?.host, fields: endToEnd(fields), body, trailers, isComplete };
}

test(`${exchanges} generated exchanges mean the same on both sides of the balancer, on kept connections`, async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  let current: Exchange | undefined;
  const arrived: string[] = [];
  const replica = (): Promise<FakeReplica> => {
    const consumed = new WeakMap<object, number>();
    return rawReplica((socket, received) => {
      const from = consumed.get(socket) ?? 0;
      const text = received.slice(from);
      if (current === undefined || readRequests(text).messages[0]?.isComplete !== true) return;
      consumed.set(socket, received.length);
      arrived.push(text);
      socket.write(current.response, 'latin1');
    });
  };
  await withReplicas([replica()], async (one) => {
    if (one === undefined) return;
    await withBalancer([aBalancerReplica(one.port)], async (balancer) => {
      let client = new RawClient(balancer.port);
      for (let turn = 0; turn < exchanges; turn += 1) {
        current = generate(random);
        const { method, request, response } = current;
        client.received = '';
        client.send(request);
        await client.untilResponse(method);
        const where = `seed ${seed}, exchange ${turn}`;
        const ours = { where, response: meaningOfResponse(client.received, method), request: meaningOfRequest(arrived.at(-1) ?? '') };
        expect(ours).toEqual({ where, response: meaningOfResponse(response, method), request: meaningOfRequest(request) });
        if (client.ended !== undefined) client = new RawClient(balancer.port);
      }
      expect(arrived).toHaveLength(exchanges);
      client.destroy();
    });
  });
}, 60_000);
