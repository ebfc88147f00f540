import type { ServiceName } from './conduct.ts';
import type { SignatureError, SignatureProblem } from '../sigv4/verify.ts';
import { ApiError } from '../wire/api-error.ts';

type Row = readonly [code: string, status: number];

const query: Readonly<Record<SignatureProblem, Row>> = {
  missing: ['MissingAuthenticationToken', 403],
  malformed: ['IncompleteSignature', 400],
  'unknown-key': ['InvalidClientTokenId', 403],
  'bad-token': ['InvalidClientTokenId', 403],
  'expired-token': ['ExpiredToken', 403],
  skewed: ['SignatureDoesNotMatch', 403],
  mismatch: ['SignatureDoesNotMatch', 403],
  'expired-url': ['SignatureDoesNotMatch', 403],
};

const json: Readonly<Record<SignatureProblem, Row>> = {
  missing: ['MissingAuthenticationTokenException', 400],
  malformed: ['IncompleteSignatureException', 400],
  'unknown-key': ['UnrecognizedClientException', 400],
  'bad-token': ['UnrecognizedClientException', 400],
  'expired-token': ['ExpiredTokenException', 400],
  skewed: ['InvalidSignatureException', 400],
  mismatch: ['InvalidSignatureException', 400],
  'expired-url': ['InvalidSignatureException', 400],
};

/** Each service has its own message for a bad signature. */
const codes: Readonly<Record<ServiceName, Readonly<Record<SignatureProblem, Row>>>> = {
  ec2: {
    missing: ['MissingParameter', 400],
    malformed: ['AuthFailure', 401],
    'unknown-key': ['AuthFailure', 401],
    'bad-token': ['AuthFailure', 401],
    'expired-token': ['RequestExpired', 400],
    skewed: ['RequestExpired', 400],
    mismatch: ['AuthFailure', 401],
    'expired-url': ['RequestExpired', 400],
  },
  iam: query,
  sts: query,
  ssm: json,
  servicequotas: json,
  s3: {
    missing: ['AccessDenied', 403],
    malformed: ['AuthorizationHeaderMalformed', 400],
    'unknown-key': ['InvalidAccessKeyId', 403],
    'bad-token': ['InvalidToken', 400],
    'expired-token': ['ExpiredToken', 400],
    skewed: ['RequestTimeTooSkewed', 403],
    mismatch: ['SignatureDoesNotMatch', 403],
    'expired-url': ['AccessDenied', 403],
  },
};

/** The error response of a service to an invalid signature. */
export function authError(service: ServiceName, error: SignatureError): ApiError {
  const [code, status] = codes[service][error.problem];
  const message =
    service === 'ec2' && code === 'AuthFailure' ? 'AWS was not able to validate the provided access credentials' : error.message;
  return new ApiError(code, message, status);
}
