/** A refusal as AWS words it: its code, message and HTTP status. 4xx for what the caller did, 5xx for what the service could not do. */
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
