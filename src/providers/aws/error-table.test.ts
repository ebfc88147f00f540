import { expect, test } from 'vitest';
import { SvcError } from '../../shared/errors.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { Offer } from '../provider.ts';
import { knownCodes, meaningOf } from './error-table.ts';
import { awsCode, awsErrors } from './errors.ts';

const offer: Offer = {
  provider: 'aws',
  region: 'us-east-1',
  zone: undefined,
  instanceType: 'g6.xlarge',
  cpus: 4,
  memoryGb: 16,
  accelerator: { name: 'L4', count: 1 },
  spot: true,
  hourlyUsd: 0.3,
};

function awsError(name: string, message = 'So it is.', httpStatusCode = 400): Error {
  return Object.assign(new Error(message), { name, $metadata: { httpStatusCode } });
}

test('every known code has one meaning', () => {
  expect(new Set(knownCodes).size).toBe(knownCodes.length);
});

test('a refusal names the machine, the provider, the message of AWS and its code', () => {
  const error = awsErrors.refusalOf(awsError('MaxSpotInstanceCountExceeded', 'Max spot instance count exceeded.'), {
    ...offer,
    zone: 'us-east-1a',
  });
  expect(error).toBeInstanceOf(ProviderRefusal);
  expect(error).toMatchObject({
    code: 'SVC_QUOTA',
    message:
      'AWS gives no g6.xlarge as spot in us-east-1 (zone us-east-1a): Max spot instance count exceeded (MaxSpotInstanceCountExceeded)',
  });
});

test.for<readonly [code: string, ours: string]>([
  ['InsufficientInstanceCapacity', 'SVC_CAPACITY'],
  ['VcpuLimitExceeded', 'SVC_QUOTA'],
  ['SpotMaxPriceTooLow', 'SVC_PRICE'],
  ['Unsupported', 'SVC_UNSUPPORTED_THERE'],
  ['PendingVerification', 'SVC_DENIED'],
  ['RequestLimitExceeded', 'SVC_THROTTLED'],
])('a launch error %s has the code %s', ([code, ours]) => {
  expect(awsErrors.refusalOf(awsError(code), offer)).toMatchObject({ code: ours });
});

test.for<readonly [code: string, status: number | undefined, kind: string]>([
  ['SomethingNewLimitExceeded', 400, 'quota'],
  ['SomethingNew', 400, 'unsupported'],
  ['SomethingNew', 500, 'failed'],
  ['SomethingNew', undefined, 'failed'],
])('an unknown error %s with status %s counts as %s', ([code, status, kind]) => {
  expect(meaningOf(code, status).kind).toBe(kind);
});

test.for(['InvalidGroup.NotFound', 'InvalidSecurityGroupID.NotFound'])('a launch whose group is gone (%s) is retried', (code) => {
  expect(meaningOf(code, 400)).toEqual({ kind: 'failed' });
});

test.for<readonly [code: string, ours: string]>([
  ['ExpiredToken', 'SVC_CREDENTIALS'],
  ['AuthFailure', 'SVC_CREDENTIALS'],
  ['CredentialsProviderError', 'SVC_CREDENTIALS'],
  ['UnauthorizedOperation', 'SVC_DENIED'],
  ['AccessDenied', 'SVC_DENIED'],
  ['RequestLimitExceeded', 'SVC_THROTTLED'],
  ['InsufficientInstanceCapacity', 'SVC_CAPACITY'],
  ['InternalError', 'SVC_PLACE_FAILED'],
  ['InvalidParameterValue', 'SVC_PLACE_FAILED'],
])('an error %s of another call has the code %s', ([code, ours]) => {
  expect(awsErrors.failureOf(awsError(code), 'list machines')).toMatchObject({ code: ours });
});

test.for<readonly [error: Error, message: string]>([
  [
    Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' }),
    'AWS did not answer a request to launch g6.xlarge in us-east-1: connect ECONNREFUSED 127.0.0.1:1 (ECONNREFUSED)',
  ],
  [
    awsError('InternalError', 'An internal error has occurred', 500),
    'AWS failed to launch g6.xlarge in us-east-1: An internal error has occurred (InternalError)',
  ],
  [awsError('DependencyViolation', 'It is in use.'), 'AWS would not launch g6.xlarge in us-east-1: It is in use (DependencyViolation)'],
])('a failure of AWS or of the network is not called a decision: %s', ([error, message]) => {
  expect(awsErrors.refusalOf(error, offer)).toMatchObject({ code: 'SVC_PLACE_FAILED', message });
});

test("svc's own errors, program errors and cancelled calls pass unchanged", () => {
  for (const error of [new SvcError('SVC_SSH', 'x'), new TypeError('x'), Object.assign(new Error('x'), { name: 'AbortError' }), 'text'])
    expect(awsErrors.refusalOf(error, offer)).toBe(error);
});

test('only requests that AWS did not process are worth repeating', () => {
  const worth = ['RequestLimitExceeded', 'Unavailable', 'InternalError', 'TimeoutError'].map((code) =>
    awsErrors.isWorthRepeating(awsError(code, '', 503)),
  );
  expect(worth).toEqual([true, true, true, true]);
  const not = [awsError('InsufficientInstanceCapacity', '', 500), awsError('IdempotentParameterMismatch'), new SvcError('SVC_SSH', 'x')];
  expect(not.map((error) => awsErrors.isWorthRepeating(error))).toEqual([false, false, false]);
});

test('encoded denials are removed, and long messages are cut', () => {
  const denial = awsErrors.failureOf(
    awsError('UnauthorizedOperation', 'You may not. Encoded authorization failure message: abc123secret'),
    'do it',
  );
  expect(denial).toMatchObject({ message: 'AWS would not do it: You may not (UnauthorizedOperation)' });
  const flood = awsErrors.failureOf(awsError('InternalError', 'x'.repeat(5_000)), 'do it');
  expect(flood instanceof Error && flood.message.length).toBeLessThan(400);
});

test('an error without AWS metadata has no AWS code', () => {
  expect(awsCode(new Error('x'))).toBeUndefined();
  expect(awsCode(awsError('Blocked'))).toBe('Blocked');
});
