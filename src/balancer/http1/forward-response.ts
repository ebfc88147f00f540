import type { Trailers } from './chunked-decoder.ts';
import { FieldKind } from './field-kinds.ts';
import type { RequestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

/** How a body is put on the wire. `none`: there is none, whatever the fields say. `close`: the end of the connection ends it. */
export type OutgoingFraming = 'none' | 'length' | 'chunked' | 'close';

/** How the response goes to this client: HTTP/1.0 knows no chunks, so there an unknown length can only end with the connection. */
export function responseFraming(head: ResponseHead, request: RequestHead): OutgoingFraming {
  if (head.isTunnel) return 'close';
  if (head.bodyLength === 0) return hasNoBody(head.status, request.method) ? 'none' : 'length';
  if (head.bodyLength > 0) return 'length';
  return request.minorVersion === 1 ? 'chunked' : 'close';
}

function hasNoBody(status: number, method: string): boolean {
  return method === 'HEAD' || status < 200 || status === 204 || status === 304;
}

const alwaysForwarded: ReadonlySet<FieldKind> = new Set([
  FieldKind.contentType,
  FieldKind.retryAfter,
  FieldKind.traceparent,
  FieldKind.requestId,
  FieldKind.host,
  FieldKind.expect,
  FieldKind.forwarding,
  FieldKind.forwardedFor,
  FieldKind.forwardedProto,
  FieldKind.forwardedHost,
]);

/** What the balancer adds to a response. */
export interface ResponseAdditions {
  readonly requestId: string;
  /** Whether the client's connection stays open after it. */
  readonly isPersistent: boolean;
  /** More fields of our own, as lines with their CRLF; empty when there are none. */
  readonly ownLines: string;
}

/** The head that the client gets. Latin-1 text, with the empty line. */
export function forwardResponseHead(
  head: ResponseHead,
  request: RequestHead,
  framing: OutgoingFraming,
  { requestId, isPersistent, ownLines }: ResponseAdditions,
): string {
  const { kinds, isChunked } = head.fields;
  let out = `HTTP/1.1 ${head.status} ${head.reason}\r\n${fieldLines(head, framing)}`;
  // A reply to HEAD, or 304, has no body but says how one would be framed (RFC 9112, section 6.1).
  const isFramingTold = framing === 'none' && isChunked && head.status !== 204 && request.minorVersion === 1;
  if (framing === 'chunked' || isFramingTold) out += 'Transfer-Encoding: chunked\r\n';
  if (head.isTunnel) out += 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  else if (!isPersistent) out += 'Connection: close\r\n';
  else if (request.minorVersion === 0) out += 'Connection: keep-alive\r\n';
  if (!kinds.includes(FieldKind.requestId)) out += `X-Request-Id: ${requestId}\r\n`;
  return `${out}${ownLines}\r\n`;
}

/** An interim response (100, 103) as the client gets it. */
export function forwardInterimHead(head: ResponseHead): string {
  return `HTTP/1.1 ${head.status} ${head.reason}\r\n${fieldLines(head, 'none')}\r\n`;
}

function fieldLines(head: ResponseHead, framing: OutgoingFraming): string {
  return head.fields.linesToForward((kind) => isForwarded(kind, head, framing));
}

function isForwarded(kind: FieldKind, head: ResponseHead, framing: OutgoingFraming): boolean {
  if (kind === FieldKind.contentLength) return framing === 'length' || (framing === 'none' && head.status !== 204 && head.status >= 200);
  if (kind === FieldKind.trailer) return framing === 'chunked';
  return alwaysForwarded.has(kind);
}

/** The end of a chunked body: the last chunk, the trailers, the empty line. */
export function lastChunk(trailers: Trailers): string {
  let out = '0\r\n';
  for (let index = 0; index < trailers.length; index += 2) out += `${trailers[index] ?? ''}: ${trailers[index + 1] ?? ''}\r\n`;
  return `${out}\r\n`;
}

/** Whether the response is an event stream, which can tell its reader that it broke. */
export function isEventStream(head: ResponseHead): boolean {
  return head.fields.firstOf(FieldKind.contentType)?.toLowerCase().startsWith('text/event-stream') === true;
}
