import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chunkedLength } from '../http1/body-length.ts';
import { forwardRequestHead } from '../http1/forward-request.ts';
import { defaultHeadLimits } from '../http1/limits.ts';
import { fieldsAsObject, fieldsOfHead } from './field-lists.ts';
import { isGrpc } from '../http1/grpc-request.ts';
import { grpcFields } from './http2-reply.ts';
import { malformed, readRequestFields, readResponseFields, readTrailerFields } from './read-heads.ts';

const pseudo = (changes: Readonly<Record<string, string>> = {}): string[] =>
  Object.entries({ ':method': 'GET', ':scheme': 'https', ':authority': 'a.example', ':path': '/', ...changes }).flat();
const read = (fields: readonly string[], isEnded = true): ReturnType<typeof readRequestFields> =>
  readRequestFields(fields, isEnded, defaultHeadLimits);
const client = { address: '192.0.2.1', proto: 'https', isTrusted: false } as const;

test.each([
  ['a line end in a value', [...pseudo(), 'x-a', '1\r\nx-forwarded-for: 6.6.6.6'], malformed],
  ['a line end in a name', [...pseudo(), 'x-a: 1\r\nx-b', '1'], malformed],
  ['a colon in a name', [...pseudo(), 'x:a', '1'], malformed],
  ['NUL in a value', [...pseudo(), 'x-a', 'a\0b'], malformed],
  ['a line end in the path', pseudo({ ':path': '/\r\nHost: b' }), malformed],
  ['a line end in the authority', pseudo({ ':authority': 'a\r\nx-b: 1' }), malformed],
  ['a line end in the method', pseudo({ ':method': 'GET / HTTP/1.1\r\n' }), malformed],
  ['a space in the method', pseudo({ ':method': 'GET /' }), malformed],
  ['no method', [':path', '/'], malformed],
  ['a pseudo-field twice', [...pseudo(), ':path', '/b'], malformed],
  ['a pseudo-field behind a field', ['x-a', '1', ...pseudo()], malformed],
  ['a coding', [...pseudo(), 'transfer-encoding', 'chunked'], malformed],
  ['a connection field', [...pseudo(), 'connection', 'x-a'], malformed],
  ['an upgrade', [...pseudo(), 'upgrade', 'websocket'], malformed],
  ['a second version in the path', pseudo({ ':path': '/ HTTP/1.1' }), 'bad_version'],
  ['an absolute target', pseudo({ ':path': 'http://b/' }), 'bad_target'],
  ['no path', [':method', 'GET', ':authority', 'a'], 'bad_target'],
  ['* with GET', pseudo({ ':path': '*' }), 'bad_target'],
  ['CONNECT', [':method', 'CONNECT', ':authority', 'a:1'], 'method_not_allowed'],
  ['user information in the authority', pseudo({ ':authority': 'u@a' }), 'bad_host'],
  ['neither authority nor host', [':method', 'GET', ':path', '/'], 'bad_host'],
  ['a host that is another', [...pseudo(), 'host', 'b'], 'bad_host'],
  ['a second host that is another', [...pseudo(), 'host', 'a.example', 'host', 'b'], 'bad_host'],
  ['two lengths', [...pseudo(), 'content-length', '1', 'content-length', '1'], 'bad_content_length'],
  ['a forged name', [...pseudo(), 'x_forwarded_for', '1'], 'forged_field'],
] as const)('a request with %s is refused', (_, fields, expected) => {
  expect(read(fields)).toBe(expected);
});

test('a declared length is kept, an unknown one means chunks, none after the end', () => {
  expect(read(pseudo({ ':method': 'POST' }), false)).toMatchObject({ bodyLength: chunkedLength, host: 'a.example', isPersistent: true });
  expect(read([...pseudo({ ':method': 'POST' }), 'content-length', '5'], false)).toMatchObject({ bodyLength: 5 });
  expect(read(pseudo())).toMatchObject({ bodyLength: 0 });
  expect(read([':method', 'GET', ':path', '/', 'host', 'b'])).toMatchObject({ host: 'b' });
});

test('cookies are joined, and other fields keep order and duplicates', () => {
  const head = read([...pseudo(), 'cookie', 'a=1', 'x-a', '1', 'x-a', '2', 'cookie', 'b=2', 'te', 'trailers']);
  if (typeof head === 'string') throw new Error(head);
  const text = forwardRequestHead(head, client, 'id');
  expect(text).toContain('x-a: 1\r\nx-a: 2\r\n');
  expect(text).toContain('cookie: a=1; b=2\r\n');
  const fields = fieldsOfHead(text);
  expect(fields).not.toContain('connection');
  expect(fieldsAsObject(fields)).toMatchObject({
    'x-a': ['1', '2'],
    te: ['trailers'],
    host: ['a.example'],
    'x-forwarded-proto': ['https'],
  });
});

test('a field may have a name that every object has', () => {
  const fields = ['constructor', '1', '__proto__', '2', 'toString', '3', '__proto__', '4'];
  expect(Object.entries(fieldsAsObject(fields))).toEqual([
    ['constructor', ['1']],
    ['__proto__', ['2', '4']],
    ['toString', ['3']],
  ]);
});

test('a field with any octets never adds a line for a replica', () => {
  const text = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)), maxLength: 12 });
  fc.assert(
    fc.property(text, text, (name, value) => {
      const head = read([...pseudo(), `x-${name}`, value]);
      if (typeof head === 'string') return true;
      const lines = forwardRequestHead(head, client, 'id').split('\r\n');
      // The request line, host, the field, three that are forwarded, the id, and the end.
      return (
        lines.length <= 9 && lines.filter((line) => /^(host|content-length|transfer-encoding|x-forwarded-for):/i.test(line)).length === 2
      );
    }),
  );
});

const readHead = (fields: readonly string[], isHead = false): ReturnType<typeof readResponseFields> =>
  readResponseFields(fields, isHead, defaultHeadLimits);

test('the strict parser also reads responses', () => {
  expect(readHead([':status', '200', 'x-a', '1'])).toMatchObject({ status: 200, bodyLength: chunkedLength });
  expect(readHead([':status', '200', 'content-length', '3'])).toMatchObject({ bodyLength: 3 });
  expect(readHead([':status', '200', 'content-length', '3'], true)).toMatchObject({ bodyLength: 0 });
  expect(readHead([':status', '204'])).toMatchObject({ bodyLength: 0 });
  expect(readHead([':status', '103', 'link', '</a>'])).toMatchObject({ status: 103 });
  expect(readHead([':status', '101'])).toBe('unasked_upgrade');
  expect(readHead([':status', '20'])).toBe('bad_status_line');
  expect(readHead(['x-a', '1'])).toBe('bad_status_line');
  expect(readHead([':status', '200', 'x-a', 'a\nb'])).toBe('bad_status_line');
});

test('dangerous trailers are dropped', () => {
  const dangerous = ['content-length', '3', ':status', '200', 'x-a', 'a\r\nb', 'x-b', ' padded ', 'authorization', 'x'];
  expect(readTrailerFields(['grpc-status', '0', ...dangerous])).toEqual(['grpc-status', '0']);
});

test.each([
  ['application/grpc', 'trailers', true],
  ['application/grpc+proto', 'trailers', true],
  ['Application/gRPC; charset=utf-8', 'trailers', true],
  ['application/grpc-web+proto', 'trailers', false],
  ['application/json', 'trailers', false],
  ['application/grpc', undefined, false],
])('%s with te %s: isGrpc is %s', (type, te, expected) => {
  const head = read([...pseudo({ ':method': 'POST' }), 'content-type', type, ...(te === undefined ? [] : ['te', te])], false);
  expect(typeof head !== 'string' && isGrpc(head)).toBe(expected);
});

test.each([
  [413, '8'],
  [502, '14'],
  [503, '14'],
  [504, '4'],
  [501, '12'],
  [400, '13'],
])('own answer %i has gRPC status %s, its message in visible ASCII', (status, expected) => {
  const fields = fieldsAsObject(grpcFields({ status, code: 'x', message: '50 % of "é"' }));
  expect(fields).toEqual({
    ':status': ['200'],
    'content-type': ['application/grpc'],
    'grpc-status': [expected],
    'grpc-message': ['50 %25 of "%C3%A9"'],
  });
});
