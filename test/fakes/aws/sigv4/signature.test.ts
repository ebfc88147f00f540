import { expect, test } from 'vitest';
import { KeyRing } from './key-ring.ts';
import { amzDate, canonicalRequest, readAmzDate, signature, signingKey, stringToSign } from './signature.ts';
import { SignatureError, verifyRequest, type UnverifiedRequest } from './verify.ts';

// The worked examples of AWS's own documentation and of its test suite for signers.
const general = {
  secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  scope: { date: '20150830', region: 'us-east-1', service: 'service' },
};
const s3Example = { secret: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', scope: { date: '20130524', region: 'us-east-1', service: 's3' } };
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const vanillaHeaders = [
  ['host', 'example.amazonaws.com'],
  ['x-amz-date', '20150830T123600Z'],
] as const;

test.for([
  ['get-vanilla', [], '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  [
    'get-vanilla-query-order-key-case',
    [
      ['Param2', 'value2'],
      ['Param1', 'value1'],
    ],
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
] as const)('signs as the test suite of AWS expects: %s', ([, query, expected]) => {
  const canonical = canonicalRequest({ method: 'GET', path: '/', query, headers: vanillaHeaders, payloadHash: emptyHash });
  expect(signature(signingKey(general.secret, general.scope), stringToSign('20150830T123600Z', general.scope, canonical))).toBe(expected);
});

const exampleKeys = new KeyRing();
exampleKeys.add({ accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: s3Example.secret, account: '1', arn: 'arn', userId: 'id' });

function request(method: string, target: string, headers: Readonly<Record<string, string>>): UnverifiedRequest {
  return { method, target, header: (name) => headers[name] };
}

const may2013 = { signing: Date.UTC(2013, 4, 24, 0, 1), sessions: 0 };
const presigned =
  '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z' +
  '&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404';
const host = { host: 'examplebucket.s3.amazonaws.com' };

test('accepts the signed GET of the documentation of S3', () => {
  const authorization =
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,' +
    'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41';
  const headers = { ...host, range: 'bytes=0-9', 'x-amz-content-sha256': emptyHash, 'x-amz-date': '20130524T000000Z', authorization };
  const verified = verifyRequest(request('GET', '/test.txt', headers), emptyHash, exampleKeys, may2013);
  expect(verified).toMatchObject({ scope: s3Example.scope, presigned: false });
});

function problemOf(changed: UnverifiedRequest, signing = may2013.signing): string {
  try {
    return String(verifyRequest(changed, emptyHash, exampleKeys, { signing, sessions: 0 }).presigned);
  } catch (error) {
    return error instanceof SignatureError ? error.problem : String(error);
  }
}

test('accepts the documented presigned URL until it expires, and only for its request', () => {
  expect([
    problemOf(request('GET', presigned, host)),
    problemOf(request('GET', presigned, host), Date.UTC(2013, 4, 25, 0, 0, 1)),
    problemOf(request('GET', presigned, host), Date.UTC(2013, 4, 23, 23, 40)),
    problemOf(request('PUT', presigned, host)),
    problemOf(request('GET', presigned.replace('test.txt', 'best.txt'), host)),
    problemOf(request('GET', presigned.replace('86400', '86401'), host)),
    problemOf(request('GET', presigned, { host: 'other.s3.amazonaws.com' })),
    problemOf(request('GET', presigned.replace('AKIAIOSFODNN7EXAMPLE', 'AKIAI'), host)),
    problemOf(request('GET', '/test.txt', host)),
  ]).toEqual(['true', 'expired-url', 'skewed', 'mismatch', 'mismatch', 'mismatch', 'mismatch', 'unknown-key', 'missing']);
});

test('parses the dates it formats', () => {
  const time = Date.UTC(2030, 0, 2, 3, 4, 5);
  expect([amzDate(time), readAmzDate(amzDate(time)), readAmzDate('2030-01-02')]).toEqual(['20300102T030405Z', time, Number.NaN]);
});
