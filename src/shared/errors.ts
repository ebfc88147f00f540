import { errorCodes, type ErrorCode, type ErrorKind } from './error-codes.ts';

/** One fault in a user's file. Lines and columns count from 1. */
export interface Problem {
  readonly message: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The offending lines with a caret under the column, ready to print. */
  readonly excerpt?: string;
  readonly hint?: string;
}

/** Optional details of an error besides code and message. */
export interface ErrorDetails {
  /** One imperative sentence or command for this case. When absent, the code's general remedy is shown. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  readonly problems?: readonly Problem[];
}

/** An expected error. Any other error that reaches the top level is a bug. Messages never contain secrets. */
export class SvcError extends Error {
  override readonly name = 'SvcError';
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly hint: string;
  readonly problems: readonly Problem[];

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.kind = errorCodes[code].kind;
    this.hint = details.hint ?? errorCodes[code].remedy;
    this.problems = details.problems ?? [];
  }
}

/** An error as the control API and `--json` print it. */
export interface ErrorReply {
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly hint: string; readonly problems: readonly Problem[] };
}

/** The printable form. An error that is no `SvcError` becomes SVC_INTERNAL without its stack. */
export function toErrorReply(error: unknown): ErrorReply {
  const known = error instanceof SvcError ? error : new SvcError('SVC_INTERNAL', `Unexpected: ${messageOf(error)}`, { cause: error });
  return { error: { code: known.code, message: known.message, hint: known.hint, problems: known.problems } };
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether an unknown value is a Node system error with the given code, such as `ENOENT`. */
export function hasErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code);
}
