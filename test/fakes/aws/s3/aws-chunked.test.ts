import fc from 'fast-check';
import { expect, test } from 'vitest';
import { signingKey } from '../sigv4/signature.ts';
import type { Verified } from '../sigv4/verify.ts';
import { ApiError } from '../wire/api-error.ts';
import { ChunkSignatures, decodeChunked, type Trailers } from './aws-chunked.ts';

// The worked example of https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
const scope = { date: '20130524', region: 'us-east-1', service: 's3' };
const example: Verified = {
  key: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: '', account: '', arn: '', userId: '' },
  scope,
  signature: '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9',
  signingKey: signingKey('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', scope),
  date: '20130524T000000Z',
  presigned: false,
};
const signatures = [
  'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
  '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
  'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
];

function exampleBody(letter = 'a'): string {
  const [first, second, last] = signatures;
  const chunk = (size: number, mark = ''): string => `${size.toString(16)};chunk-signature=${mark}\r\n${letter.repeat(size)}\r\n`;
  return chunk(65_536, first) + chunk(1_024, second) + `0;chunk-signature=${last ?? ''}\r\n\r\n`;
}

/** Returns the decoded body of pieces of some size; the code of the error when it is refused. */
async function decode(body: string, pieceSize: number, signed: boolean, trailers: Trailers = new Map()): Promise<string> {
  async function* pieces(): AsyncGenerator<Buffer> {
    for (let at = 0; at < body.length; at += pieceSize) yield Buffer.from(body.slice(at, at + pieceSize), 'latin1');
  }
  let text = '';
  try {
    for await (const piece of decodeChunked(pieces(), signed ? new ChunkSignatures(example) : undefined, trailers))
      text += piece.toString('latin1');
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
  return text;
}

test('accepts the signed chunks of the documentation, and refuses modified ones', async () => {
  expect((await decode(exampleBody(), 10_000, true)).length).toBe(66_560);
  expect(await decode(exampleBody('b'), 10_000, true)).toBe('SignatureDoesNotMatch');
  expect(await decode(exampleBody().replaceAll(/;chunk-signature=\w+/g, ''), 10_000, true)).toBe('SignatureDoesNotMatch');
});

test('any split of the body decodes to the same bytes and trailers', async () => {
  const chunks = fc.array(fc.string({ minLength: 1, maxLength: 20, unit: 'binary-ascii' }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(chunks, fc.integer({ min: 1, max: 40 }), async (texts, pieceSize) => {
      const body = texts.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join('');
      const trailers: Trailers = new Map();
      expect(await decode(`${body}0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n`, pieceSize, false, trailers)).toBe(texts.join(''));
      expect([...trailers]).toEqual([['x-amz-checksum-crc32', 'AAAAAA==']]);
    }),
  );
});

test.for([
  ['3\r\nab', 'IncompleteBody'],
  ['3\r\nabcd\r\n0\r\n\r\n', 'InvalidRequest'],
  ['no head\r\n', 'InvalidRequest'],
  ['0\r\n', 'IncompleteBody'],
  ['0\r\n\r\nmore', 'InvalidRequest'],
] as const)('refuses the body %j', async ([body, code]) => {
  expect(await decode(body, 3, false)).toBe(code);
});
