import type { Dice } from './dice.ts';

/** Generates grammatical messages; mutations damage them afterwards. */

const methods = ['GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH', 'REPORT'] as const;
const targets = [
  '/',
  '/a',
  '/a/b?c=d',
  '//x',
  '/%00?',
  "/~!$&'()*+,;=:@",
  '/a?b?/c',
  'http://a/',
  'http://a',
  'http://a?q',
  'HTTP://A/x',
] as const;

/** Bodies that resemble the bytes after a body, so that a wrong boundary shows at once. */
const bodies = [
  '',
  'a',
  '0\r\n\r\n',
  'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  '\r\n',
  '5\r\nabcde\r\n0\r\n\r\n',
  '\u0000\u007f\u0080\u00ff\n\r',
  'x'.repeat(300),
] as const;

const plainFields = [
  'A: b',
  'a:c',
  'X-Empty:',
  'X-Obs: \u00e4\u00ff',
  'X-Space:  a \t b \t',
  'Cookie: a=b',
  'User-Agent: x/1',
  'Accept: */*',
];
const requestFields = [
  'Connection: keep-alive',
  'Connection: close',
  'Connection: X-Hop, keep-alive',
  'X-Hop: 1',
  'TE: trailers',
  'Trailer: X-Sum',
  'Upgrade: h2c',
  'Expect: 100-continue',
  'Keep-Alive: timeout=5',
  'X-Forwarded-For: 1.2.3.4',
  'X-Svc-Replica: 9',
  'X-Request-Id: abc',
  'Proxy-Connection: keep-alive',
];
const responseFields = [
  'Connection: close',
  'Connection: keep-alive',
  'Keep-Alive: timeout=5, max=9',
  'Set-Cookie: a=b',
  'set-cookie: c=d',
  'Content-Type: text/event-stream',
  'Trailer: X-Sum',
  'Retry-After: 3',
  'X-Request-Id: abc',
  'X-Svc-Reason: fake',
  'Upgrade: h2c',
];
const trailers = [
  'X-Sum: 1\r\n',
  'x-sum:2\r\n',
  'Content-Length: 3\r\n',
  'Host: b\r\n',
  'Transfer-Encoding: chunked\r\n',
  'X-Obs: \u00e4\r\n',
];

/** As a list, so that a mutation can choose one. */
export const anyField: readonly string[] = [...plainFields, ...requestFields, ...responseFields];

function fields(dice: Dice, special: readonly string[]): string {
  const lines = [...dice.someOf(plainFields, 4), ...dice.someOf(special, 12)];
  return lines.map((line) => `${line}\r\n`).join('');
}

function chunked(dice: Dice, body: string): string {
  let out = '';
  for (let at = 0; at < body.length;) {
    const size = 1 + dice.below(Math.min(40, body.length - at));
    const digits = dice.oneOf([size.toString(16), size.toString(16).toUpperCase(), `000${size.toString(16)}`]);
    out += `${digits}${dice.oneOf(['', '', '', ';a', ';a="b;c"', '; a=b'])}\r\n${body.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${out}${dice.oneOf(['0', '0', '000', '0;x'])}\r\n${dice.someOf(trailers, 6).join('')}\r\n`;
}

/** The framing fields, the empty line and the body. */
function framed(dice: Dice, body: string): string {
  if (dice.once(2)) return `${dice.oneOf(['Content-Length', 'content-length'])}: ${body.length}\r\n\r\n${body}`;
  const line = `${dice.oneOf(['Transfer-Encoding', 'transfer-encoding'])}: ${dice.oneOf(['chunked', 'chunked', 'CHUNKED'])}`;
  return `${line}\r\n\r\n${chunked(dice, body)}`;
}

const content = (dice: Dice): string => dice.oneOf(bodies) + (dice.once(4) ? dice.oneOf(bodies) : '');

/** One complete request. */
export function aRequest(dice: Dice): string {
  const method = dice.oneOf(methods);
  const target = method === 'OPTIONS' && dice.once(2) ? '*' : dice.oneOf(targets);
  const version = dice.once(8) ? '1.0' : '1.1';
  const host = target.startsWith('HTTP://A') ? 'A' : 'a';
  const head = `${dice.once(20) ? '\r\n' : ''}${method} ${target} HTTP/${version}\r\n${dice.oneOf(['Host', 'Host', 'host'])}: ${host}\r\n`;
  const hasBody = version === '1.1' && dice.below(3) > 0;
  return `${head}${fields(dice, requestFields)}${hasBody ? framed(dice, content(dice)) : '\r\n'}`;
}

/** Requests sent one after the other on one connection. */
export function aPipeline(dice: Dice): string {
  return dice.repeat(1 + dice.below(3), () => aRequest(dice));
}

/** One response to a request of that method, after interim ones. */
export function aResponse(dice: Dice, method: string): string {
  const interim = dice.once(6)
    ? dice.repeat(
        1 + dice.below(3),
        () => `HTTP/1.1 ${dice.oneOf(['100 Continue', '103 Early Hints', '102 Processing'])}\r\n${dice.oneOf(['', 'Link: x\r\n'])}\r\n`,
      )
    : '';
  const status = dice.oneOf(['200 OK', '200 OK', '200', '404 Not here', '204 No Content', '304 Not Modified', '500 \u00e4', '299 ']);
  const version = dice.once(8) ? '1.0' : '1.1';
  const head = `${interim}HTTP/${version} ${status}\r\n${fields(dice, responseFields)}`;
  if (status.startsWith('204')) return `${head}\r\n`;
  if (method === 'HEAD' || status.startsWith('304'))
    return `${head}${dice.oneOf(['', 'Content-Length: 5\r\n', 'Transfer-Encoding: chunked\r\n'])}\r\n`;
  if (dice.once(6)) return `${head}\r\n${content(dice)}`;
  if (version === '1.0') return `${head}Content-Length: 3\r\n\r\nabc`;
  return head + framed(dice, content(dice));
}
