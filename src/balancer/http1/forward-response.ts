import type { Trailers } from './chunked-decoder.ts';
import { FieldKind } from './field-kinds.ts';
import type { RequestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

/** How a body is framed on the wire. `none`: no body, whatever the fields say. `close`: it ends with the connection. */
export type OutgoingFraming = 'none' | 'length' | 'chunked' | 'close';

/** HTTP/1.0 has no chunks: a body of unknown length ends with the connection. */
export function responseFraming(head: ResponseHead, request: RequestHead): OutgoingFraming {
  if (head.isTunnel) return 'close';
  if (head.bodyLength === 0) return hasNoBody(head.status, request.method) ? 'none' : 'length';
  if (head.bodyLength > 0) return 'length';
  return request.minorVersion === 1 ? 'chunked' : 'close';
}

function hasNoBody(status: number, method: string): boolean {
  return method === 'HEAD' || status < 200 || status === 204 || status === 304;
}

/** Kinds of fields that are forwarded unchanged, besides `plain`. */
const alwaysForwarded: ReadonlySet<FieldKind> = new Set([
  FieldKind.contentType,
  FieldKind.retryAfter,
  FieldKind.traceparent,
  FieldKind.version,
  FieldKind.requestId,
  FieldKind.host,
  FieldKind.expect,
  FieldKind.forwarding,
  FieldKind.forwarded,
  FieldKind.forwardedFor,
  FieldKind.forwardedProto,
  FieldKind.forwardedHost,
]);

interface ResponseAdditions {
  readonly requestId: string;
  readonly isPersistent: boolean;
  /** Lines with their CRLF. */
  readonly ownLines: string;
}

/** Writes the response's head for the client, as Latin-1 text that ends with the empty line. */
export function forwardResponseHead(
  head: ResponseHead,
  request: RequestHead,
  framing: OutgoingFraming,
  { requestId, isPersistent, ownLines }: ResponseAdditions,
): string {
  const { kinds, isChunked } = head.fields;
  let out = `HTTP/1.1 ${head.status} ${head.reason}\r\n${fieldLines(head, framing)}`;
  // A response to HEAD and a 304 have no body, but their fields state the framing of one (RFC 9112, section 6.1).
  const isFramingDeclared = framing === 'none' && isChunked && head.status !== 204 && request.minorVersion === 1;
  if (framing === 'chunked' || isFramingDeclared) out += 'Transfer-Encoding: chunked\r\n';
  if (head.isTunnel) out += 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  else if (!isPersistent) out += 'Connection: close\r\n';
  else if (request.minorVersion === 0) out += 'Connection: keep-alive\r\n';
  if (!kinds.includes(FieldKind.requestId)) out += `X-Request-Id: ${requestId}\r\n`;
  return `${out}${ownLines}\r\n`;
}

/** Writes the head of an interim response (100 or 103) for the client. */
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

/** Whether the response is an event stream. Only there can the balancer report a break as an event. */
export function isEventStream(head: ResponseHead): boolean {
  return head.fields.firstOf(FieldKind.contentType)?.toLowerCase().startsWith('text/event-stream') === true;
}
