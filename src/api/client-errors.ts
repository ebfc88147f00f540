import { errorCodes, type ErrorCode } from '../shared/error-codes.ts';
import { SvcError, type ErrorReply } from '../shared/errors.ts';

/** Whether a parsed reply, or a line of one, is an error rather than what was asked for. */
export function isErrorReply(value: unknown): value is ErrorReply {
  if (typeof value !== 'object' || value === null || !('error' in value)) return false;
  const { error } = value;
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' && 'message' in error;
}

/** The error that the controller threw. A code that this version does not know, from a newer controller, becomes SVC_INTERNAL. */
export function toSvcError({ error }: ErrorReply): SvcError {
  const { message, hint, problems } = error;
  const code: string = error.code;
  if (!isKnown(code)) return new SvcError('SVC_INTERNAL', `${message} (${code})`, { hint });
  return new SvcError(code, message, { hint, problems });
}

function isKnown(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code);
}
