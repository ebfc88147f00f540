import fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import { test } from 'vitest';
import { readRequests, readResponse } from '../../../test/support/http1-events.ts';

const token = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,12}$/);
const value = fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/);
const bytes = fc.uint8Array({ maxLength: 60 }).map((octets) => Buffer.from(octets).toString('latin1'));
const field = fc.tuple(token, value).map(([name, content]) => `${name}: ${content}\r\n`);
const fields = fc.array(field, { maxLength: 6 }).map((all) => all.join(''));

/** Trailers that pass, and those that are dropped. */
const trailers = fc.tuple(fields, fc.constantFrom('', 'Content-Length: 3\r\n', 'Host: b\r\n')).map((all) => all.join(''));

const chunkedBody = fc
  .tuple(fc.array(fc.tuple(bytes, fc.constantFrom('', ';a', ';a="b"')), { maxLength: 5 }), trailers)
  .map(([chunks, last]) => {
    const sent = chunks
      .filter(([data]) => data !== '')
      .map(([data, extension]) => `${data.length.toString(16)}${extension}\r\n${data}\r\n`);
    return `Transfer-Encoding: chunked\r\n\r\n${sent.join('')}0\r\n${last}\r\n`;
  });
const sizedBody = bytes.map((data) => `Content-Length: ${data.length}\r\n\r\n${data}`);
const body = fc.oneof(chunkedBody, sizedBody, fc.constant('\r\n'));

const request = fc
  .tuple(fc.constantFrom('GET', 'POST', 'DELETE', 'X'), fields, body)
  .map(([method, more, rest]) => `${method} /a?b HTTP/1.1\r\nHost: a\r\n${more}${rest}`);
const interim = fc
  .array(fc.tuple(fc.constantFrom(100, 102, 103), fields), { maxLength: 10 })
  .map((all) => all.map(([status, more]) => `HTTP/1.1 ${status} Early\r\n${more}\r\n`).join(''));
const untilClose = bytes.map((data) => `\r\n${data}`);
const response = fc
  .tuple(
    fc.oneof(fc.constant(''), interim),
    fc.constantFrom('1.0', '1.1'),
    fc.constantFrom(200, 204, 404, 503),
    fields,
    fc.oneof(body, untilClose),
  )
  .map(([early, version, status, more, rest]) => `${early}HTTP/${version} ${status} Reason here\r\n${more}${rest}`);

/** Valid messages, messages with one changed byte, and noise: the parse must not depend on how they are split. */
function damaged(messages: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const oneByteChanged = fc.tuple(messages, fc.nat(), fc.nat(255)).map(([text, at, octet]) => {
    const position = at % text.length;
    return text.slice(0, position) + String.fromCharCode(octet) + text.slice(position + 1);
  });
  return fc.oneof(messages, oneByteChanged, bytes);
}

const cuts = fc.array(fc.nat(400), { maxLength: 12 });

test('any split of request bytes into reads gives the same result', () => {
  const stream = fc.array(damaged(request), { minLength: 1, maxLength: 3 }).map((all) => all.join(''));
  fc.assert(
    fc.property(stream, cuts, (text, offsets) => {
      const inside = offsets.filter((offset) => offset < text.length);
      return (
        isDeepStrictEqual(readRequests(text, inside), readRequests(text)) &&
        isDeepStrictEqual(readRequests(text, everywhere(text)), readRequests(text))
      );
    }),
    { numRuns: 400 },
  );
});

test('any split of response bytes into reads gives the same result', () => {
  fc.assert(
    fc.property(damaged(response), cuts, fc.constantFrom('GET', 'HEAD'), (text, offsets, method) => {
      const inside = offsets.filter((offset) => offset < text.length);
      const whole = readResponse(text, [], method);
      return (
        isDeepStrictEqual(readResponse(text, inside, method), whole) &&
        isDeepStrictEqual(readResponse(text, everywhere(text), method), whole)
      );
    }),
    { numRuns: 400 },
  );
});

test('any split gives the same fault, and bytes after it are ignored', () => {
  const faulty = fc
    .tuple(request, fc.constantFrom('GET / HTTP/1.1\nHost: a\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', 'A: b\r\n c\r\n', '\u0000', ' '), request)
    .map(([before, wrong, after]) => [before, before + wrong + after] as const);
  fc.assert(
    fc.property(faulty, cuts, ([before, text], offsets) => {
      const { messages } = readRequests(
        text,
        offsets.filter((offset) => offset < text.length),
      );
      const reference = readRequests(text).messages;
      return (
        messages.length === 2 &&
        messages[1]?.fault !== undefined &&
        isDeepStrictEqual(messages, reference) &&
        isDeepStrictEqual(messages.slice(0, 1), readRequests(before).messages)
      );
    }),
    { numRuns: 200 },
  );
});

function everywhere(text: string): readonly number[] {
  return Array.from(text, (_, index) => index);
}
