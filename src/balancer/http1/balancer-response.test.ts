import { describe, expect, test } from 'vitest';
import { readResponse } from '../../../test/support/http1-events.ts';
import { faults, type Fault } from './faults.ts';
import { writeBalancerResponse } from './balancer-response.ts';

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its keys are the faults
const all = Object.entries(faults) as unknown as readonly (readonly [Fault, (typeof faults)[Fault]])[];

const bodyOf = (text: string): unknown => JSON.parse(readResponse(text).messages[0]?.body ?? '');

describe('the client of a refused request gets JSON with the reason, and a close', () => {
  test.each(all)('%s', (code, { status, message }) => {
    const text = writeBalancerResponse({ status, code, message }, undefined, 'id-1', false);
    const [reply] = readResponse(text).messages;
    expect(reply).toMatchObject({ isComplete: true, head: { status, isPersistent: false } });
    expect(reply?.fields).toEqual(
      expect.arrayContaining(['Content-Type: application/json', `X-Svc-Reason: ${code}`, 'X-Request-Id: id-1', 'Connection: close']),
    );
    expect(bodyOf(text)).toEqual({ error: { message, type: 'invalid_request_error', code } });
    expect(reply?.head?.reason).not.toBe('Error');
  });

  test('each fault has its own sentence', () => {
    const messages = all.map(([, { message }]) => message);
    expect(new Set(messages).size).toBe(messages.length);
    expect(messages.filter((message) => !/^[A-Z*].*\.$/.test(message))).toEqual([]);
  });
});

test.each([
  ['replica_lost', 502, 'server_error', undefined],
  ['no_ready_replica', 503, 'server_error', 7],
  ['overloaded', 503, 'server_error', 7],
  ['first_byte_timeout', 504, 'server_error', undefined],
  ['internal_error', 500, 'server_error', undefined],
  ['request_timeout', 408, 'invalid_request_error', undefined],
] as const)('%s is answered with %i', (code, status, type, retryAfter) => {
  const text = writeBalancerResponse(
    { status, code, message: 'M\u00fc.', ...(retryAfter !== undefined && { retryAfter }) },
    undefined,
    'id-1',
    true,
  );
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  const [reply] = readResponse(bytes).messages;
  expect(reply).toMatchObject({ isComplete: true, head: { status, isPersistent: true } });
  expect(reply?.fields.filter((line) => line.startsWith('Retry-After'))).toEqual(retryAfter === undefined ? [] : ['Retry-After: 7']);
  expect(readResponse(bytes).excess).toBe(0);
  expect(JSON.parse(Buffer.from(reply?.body ?? '', 'latin1').toString('utf8'))).toEqual({ error: { message: 'M\u00fc.', type, code } });
});
