import { expect, test } from 'vitest';
import { selfSigned } from '../../../test/support/certificate.ts';
import { headOf } from '../../../test/support/http1-events.ts';
import { HttpsRedirect } from './https-redirect.ts';

/** The answer to a request: its status, and where it leads. */
function answer(host: string | undefined, path: string, port: number): string {
  const redirect = new HttpsRedirect(selfSigned());
  redirect.port = port;
  const head = headOf(host === undefined ? `GET ${path} HTTP/1.0\r\n\r\n` : `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const { status, location = '' } = redirect.responseTo(head);
  return `${status} ${location}`.trimEnd();
}

test.each([
  ['localhost', '/a?b=c', 30_001, '308 https://localhost:30001/a?b=c'],
  ['localhost', '/', 443, '308 https://localhost/'],
  ['LocalHost:8080', '/', 443, '308 https://LocalHost/'],
  ['localhost:', '/', 443, '308 https://localhost/'],
  ['127.0.0.1:80', '/', 30_001, '308 https://127.0.0.1:30001/'],
  ['localhost', '//evil.example/x', 443, '308 https://localhost//evil.example/x'],
  ['localhost', 'http://localhost/x', 443, '308 https://localhost/x'],
  ['evil.example', '/', 443, '421'],
  ['localhost.evil.example', '/', 443, '421'],
  ['127.0.0.2', '/', 443, '421'],
  ['[::1]:80', '/', 443, '421'],
  [undefined, '/', 443, '400'],
])('with Host %j, %s leads at port %i to %s', (host, path, port, expected) => {
  expect(answer(host, path, port)).toBe(expected);
});
