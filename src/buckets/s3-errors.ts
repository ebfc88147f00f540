import type { ErrorCode } from '../shared/error-codes.ts';
import { messageOf, SvcError } from '../shared/errors.ts';

// Codes of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, and the SDK's error names.
const credentialFaults = new Set([
  'CredentialsProviderError',
  'TokenProviderError',
  'AuthorizationHeaderMalformed',
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidAccessKeyId',
  'InvalidToken',
  'SignatureDoesNotMatch',
  'TokenRefreshRequired',
  'UnrecognizedClientException',
]);
const denials = new Set(['AccessDenied', 'AccessDeniedException', 'AccountProblem', 'AllAccessDisabled', 'Forbidden', 'NotSignedUp']);

/** The error code of S3 or the SDK, such as `NoSuchKey`; empty for other errors. */
export function s3Code(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

/** The HTTP status; undefined when there was no response. */
export function s3Status(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined;
  const metadata = error.$metadata;
  if (typeof metadata !== 'object' || metadata === null || !('httpStatusCode' in metadata)) return undefined;
  return typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : undefined;
}

/** Whether the requested object or bucket does not exist. */
export function isMissing(error: unknown): boolean {
  return ['NoSuchBucket', 'NoSuchKey', 'NoSuchUpload', 'NotFound'].includes(s3Code(error)) || s3Status(error) === 404;
}

/** Whether an S3-compatible service does not support this part of the protocol. */
export function isUnsupported(error: unknown): boolean {
  return ['NotImplemented', 'MethodNotAllowed'].includes(s3Code(error)) || [405, 501].includes(s3Status(error) ?? 0);
}

/** Turns a failure into an error for users. `what` is the intended action, after "Cannot". */
export async function guardS3<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof SvcError || s3Code(error) === 'AbortError') throw error;
    const code = codeOf(error);
    const hint = code === 'SVC_BUCKET' && s3Code(error) === 'NoSuchBucket' ? 'Check the name of the bucket.' : undefined;
    throw new SvcError(code, `Cannot ${what}: ${reasonOf(error)}`, { cause: error, hint });
  }
}

function codeOf(error: unknown): ErrorCode {
  const name = s3Code(error);
  if (credentialFaults.has(name)) return 'SVC_CREDENTIALS';
  if (denials.has(name) || s3Status(error) === 403) return 'SVC_DENIED';
  return 'SVC_BUCKET';
}

/** Code and text: S3's texts alone can be vague, and responses to HEAD have none. */
function reasonOf(error: unknown): string {
  const name = s3Code(error);
  const text = messageOf(error);
  const status = s3Status(error);
  if (text === '' || text === name || text === 'UnknownError') return status === undefined ? name : `${name} (HTTP ${status})`;
  return name === '' || name === 'Error' ? text : `${text} (${name})`;
}
