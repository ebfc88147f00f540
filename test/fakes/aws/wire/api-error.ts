/**
 * A refusal in AWS's form: code, message and HTTP status. 4xx for an error of the caller, 5xx for one of the service.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: string;
  readonly status: number;
  /** Further elements of an S3 error, such as the bucket's region. */
  readonly details: Readonly<Record<string, string>>;

  constructor(code: string, message: string, status = 400, details: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.details = details;
  }
}
