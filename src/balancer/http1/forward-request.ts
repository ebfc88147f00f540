import { isValidAuthority } from './authority.ts';
import { chunkedLength } from './body-length.ts';
import { FieldKind } from './field-kinds.ts';
import { forwardedHop, readForwarded } from './forwarded-field.ts';
import type { RequestHead } from './request-head.ts';

/** What the balancer knows about a client besides its request. */
export interface ForwardedClient {
  /** Without brackets. */
  readonly address: string;
  readonly proto: 'http' | 'https';
  /** Of the client's verified certificate; visible ASCII. Undefined when clients need none. */
  readonly subject?: string | undefined;
  /** Whether the client is a trusted proxy. If so, its forwarding fields are extended, otherwise replaced. */
  readonly isTrusted: boolean;
}

/** The `Host` for an HTTP/1.0 request without one. Replicas require it, because they get HTTP/1.1. */
const defaultHost = 'localhost';

/** Methods that expect a body. A request without one has `Content-Length: 0` (RFC 9110, section 8.6). */
const methodsWithContent: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** Kinds of fields that are forwarded unchanged, besides `plain`. */
const alwaysForwarded: ReadonlySet<FieldKind> = new Set([
  FieldKind.host,
  FieldKind.contentLength,
  FieldKind.contentType,
  FieldKind.retryAfter,
  FieldKind.traceparent,
  FieldKind.version,
]);

/**
 * Writes the request's head for a replica, as Latin-1 text that ends with the empty line. Drops hop-by-hop fields and
 * those that `Connection` names. The balancer writes framing and forwarding fields itself.
 */
export function forwardRequestHead(head: RequestHead, client: ForwardedClient, requestId: string): string {
  const { kinds, contentLength } = head.fields;
  let out = `${head.method} ${head.path} HTTP/1.1\r\n`;
  out += head.fields.linesToForward((kind) => isForwarded(kind, head, client));
  const host = head.host ?? defaultHost;
  if (!kinds.includes(FieldKind.host)) out += `Host: ${host}\r\n`;
  if (head.bodyLength === chunkedLength) out += 'Transfer-Encoding: chunked\r\n';
  else if (contentLength === undefined && methodsWithContent.has(head.method)) out += 'Content-Length: 0\r\n';
  if (head.isUpgrade) out += 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  else if (acceptsTrailers(head)) out += 'TE: trailers\r\nConnection: TE\r\n';
  out += client.isTrusted
    ? forwardingLines(head, client, host)
    : `X-Forwarded-For: ${client.address}\r\nX-Forwarded-Proto: ${client.proto}\r\nX-Forwarded-Host: ${host}\r\n`;
  // The balancer forwards no field of that name, so a client cannot forge it.
  if (client.subject !== undefined) out += `X-Svc-Client-Subject: ${client.subject}\r\n`;
  return `${out}X-Request-Id: ${requestId}\r\n\r\n`;
}

/**
 * Extends a trusted proxy's chain by its address, in `X-Forwarded-For` and in `Forwarded` if it sent that. Keeps its scheme
 * and host if there is one valid value of each. A proxy without `X-Forwarded-*` reports them by `Forwarded`: only then,
 * because one that does not know this field passes on what its client wrote there.
 */
function forwardingLines({ fields }: RequestHead, client: ForwardedClient, host: string): string {
  const given = fields.allOf(FieldKind.forwarded);
  const hops = readForwarded(given) ?? [];
  const extended = hops.length === 0 ? '' : `Forwarded: ${given.join(', ')}, ${forwardedHop(client.address, client.proto)}\r\n`;
  const hasOwn = [FieldKind.forwardedFor, FieldKind.forwardedProto, FieldKind.forwardedHost].some((kind) => fields.kinds.includes(kind));
  const last = hops.at(-1);
  const addresses = hasOwn ? fields.allOf(FieldKind.forwardedFor).filter((value) => value !== '') : hops.map(({ address }) => address);
  const proto = hasOwn ? onlyOne(fields.allOf(FieldKind.forwardedProto)) : last?.proto;
  const givenHost = hasOwn ? onlyOne(fields.allOf(FieldKind.forwardedHost)) : last?.host;
  return (
    `${extended}X-Forwarded-For: ${[...addresses, client.address].join(', ')}\r\n` +
    `X-Forwarded-Proto: ${proto === 'http' || proto === 'https' ? proto : client.proto}\r\n` +
    `X-Forwarded-Host: ${givenHost !== undefined && isValidAuthority(givenHost) ? givenHost : host}\r\n`
  );
}

const onlyOne = (values: readonly string[]): string | undefined => (values.length === 1 ? values[0] : undefined);

function isForwarded(kind: FieldKind, head: RequestHead, client: ForwardedClient): boolean {
  if (kind === FieldKind.forwarding) return client.isTrusted;
  if (kind === FieldKind.trailer) return head.bodyLength === chunkedLength;
  if (kind === FieldKind.expect) return head.expectsContinue;
  return alwaysForwarded.has(kind);
}

/** Whether the client accepts trailers. The balancer relays them, so it announces this to the replica. */
function acceptsTrailers({ fields, minorVersion }: RequestHead): boolean {
  if (minorVersion === 0 || !fields.kinds.includes(FieldKind.te)) return false;
  return fields.allOf(FieldKind.te).some((value) => value.toLowerCase().includes('trailers'));
}

const maxRequestIdLength = 128;

/** The client's `X-Request-Id`; undefined unless there is exactly one, visible ASCII and short enough to log. */
export function givenRequestId({ fields }: RequestHead): string | undefined {
  const index = fields.kinds.indexOf(FieldKind.requestId);
  if (index < 0 || fields.kinds.lastIndexOf(FieldKind.requestId) !== index) return undefined;
  const value = fields.value(index);
  if (value.length === 0 || value.length > maxRequestIdLength) return undefined;
  for (let at = 0; at < value.length; at += 1) {
    const octet = value.charCodeAt(at);
    if (octet <= 0x20 || octet > 0x7e) return undefined;
  }
  return value;
}
