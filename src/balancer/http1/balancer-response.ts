import type { RequestHead } from './request-head.ts';

/** An answer of the balancer itself. */
export interface BalancerResponse {
  readonly status: number;
  /** Stable, in `code` and `x-svc-reason`. */
  readonly code: string;
  readonly message: string;
  /** In seconds. */
  readonly retryAfter?: number;
  /** A URL of visible ASCII characters. */
  readonly location?: string;
}

const reasons: Readonly<Record<number, string>> = {
  308: 'Permanent Redirect',
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  414: 'URI Too Long',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

const servedMethods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** 4xx, and 501 for an unsupported coding. */
export function isClientFault(status: number): boolean {
  return status < 500 || status === 501;
}

/** In the JSON shape whose message clients of OpenAI-like services show. `request`: undefined when unreadable. */
export function writeBalancerResponse(
  response: BalancerResponse,
  request: RequestHead | undefined,
  requestId: string,
  isPersistent: boolean,
): string {
  const { status, code, message, retryAfter, location } = response;
  const type = isClientFault(status) ? 'invalid_request_error' : 'server_error';
  const body = `${JSON.stringify({ error: { message, type, code } })}\n`;
  let out = `HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}\r\nContent-Type: application/json\r\nContent-Length: ${utf8Length(body)}\r\n`;
  if (status === 405) out += `Allow: ${servedMethods}\r\n`;
  if (location !== undefined) out += `Location: ${location}\r\n`;
  if (retryAfter !== undefined) out += `Retry-After: ${retryAfter}\r\n`;
  out += `X-Svc-Reason: ${code}\r\nX-Request-Id: ${requestId}\r\n`;
  if (!isPersistent) out += 'Connection: close\r\n';
  else if (request?.minorVersion === 0) out += 'Connection: keep-alive\r\n';
  return request?.method === 'HEAD' ? `${out}\r\n` : `${out}\r\n${body}`;
}

function utf8Length(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}
