import { isValidAuthority } from './authority.ts';
import { type BodyLength, chunkedLength } from './body-length.ts';
import type { Fault } from './faults.ts';
import { FieldKind } from './field-kinds.ts';
import { type HeadFields, isWebSocketUpgrade, readFields } from './head-fields.ts';
import type { HeadScanner } from './head-scanner.ts';

/** A request's head that passed every rule. */
export interface RequestHead {
  readonly method: string;
  /** Origin-form or `*`. */
  readonly path: string;
  readonly minorVersion: 0 | 1;
  /** From the `Host` field, else from an absolute target; undefined with HTTP/1.0 only. */
  readonly host: string | undefined;
  readonly fields: HeadFields;
  /** 0 when there is no body. */
  readonly bodyLength: BodyLength;
  /** Whether the client wants to send another request on the connection. */
  readonly isPersistent: boolean;
  /** Whether the client waits for 100 (Continue) before it sends the body. */
  readonly expectsContinue: boolean;
  /** To WebSocket, the only upgrade that is passed on. */
  readonly isUpgrade: boolean;
}

/** Validates and interprets the scanned lines. */
export function readRequestHead(scanner: HeadScanner): RequestHead | Fault {
  const { text, minorVersion } = scanner;
  const method = text.slice(scanner.methodStart, scanner.methodEnd);
  if (method === 'CONNECT' || method === 'TRACE') return 'method_not_allowed';
  const target = readTarget(method, text.slice(scanner.methodEnd + 1, scanner.targetEnd));
  if (target === undefined) return 'bad_target';
  const fields = readFields(scanner);
  if (typeof fields === 'string') return fields;
  const host = readHost(fields, target.authority, minorVersion);
  if (host === false || (host === undefined && minorVersion === 1)) return 'bad_host';
  const expectation = readExpectation(fields);
  if (expectation === false) return 'bad_expectation';
  const { connection } = fields;
  return {
    method,
    path: target.path,
    minorVersion,
    host,
    fields,
    bodyLength: fields.isChunked ? chunkedLength : (fields.contentLength ?? 0),
    isPersistent: minorVersion === 1 ? !connection.close : connection.keepAlive && !connection.close,
    // A client of HTTP/1.0 cannot understand the interim answer (RFC 9110, section 10.1.1).
    expectsContinue: expectation === '100-continue' && minorVersion === 1,
    isUpgrade: method === 'GET' && minorVersion === 1 && asksForWebSocket(fields),
  };
}

/** RFC 6455, section 4.1. A request with a body could be parsed in two ways once the protocol has changed. */
function asksForWebSocket(fields: HeadFields): boolean {
  if (fields.connection.nominated?.has('upgrade') !== true || fields.isChunked || (fields.contentLength ?? 0) > 0) return false;
  return isWebSocketUpgrade(fields);
}

/** False for several `Host` fields, an invalid one, or one that differs from the target's authority. */
function readHost(fields: HeadFields, authority: string | undefined, minorVersion: 0 | 1): string | undefined | false {
  const index = fields.kinds.indexOf(FieldKind.host);
  // HTTP/1.1 requires the field in any case; an absolute target does not replace it (RFC 9112, section 3.2).
  if (index < 0) return minorVersion === 0 ? authority : undefined;
  const host = fields.value(index);
  if (fields.kinds.lastIndexOf(FieldKind.host) !== index || !isValidAuthority(host)) return false;
  return authority === undefined || authority.toLowerCase() === host.toLowerCase() ? host : false;
}

function readExpectation(fields: HeadFields): '100-continue' | undefined | false {
  if (!fields.kinds.includes(FieldKind.expect)) return undefined;
  return fields.allOf(FieldKind.expect).every((value) => value.toLowerCase() === '100-continue') ? '100-continue' : false;
}

interface RequestTarget {
  /** Origin-form or `*`: the form that the replica gets. */
  readonly path: string;
  /** Of an absolute-form target. */
  readonly authority: string | undefined;
}

const schemes = ['http://', 'https://'] as const;

/** Undefined unless the target is origin-form, absolute-form, or `*` with OPTIONS (RFC 9112, section 3.2). */
function readTarget(method: string, target: string): RequestTarget | undefined {
  if (target.startsWith('/')) return { path: target, authority: undefined };
  if (target === '*') return method === 'OPTIONS' ? { path: '*', authority: undefined } : undefined;
  const lower = target.slice(0, 8).toLowerCase();
  const scheme = schemes.find((candidate) => lower.startsWith(candidate));
  if (scheme === undefined) return undefined;
  const pathStart = endOfAuthority(target, scheme.length);
  const authority = target.slice(scheme.length, pathStart);
  if (!isValidAuthority(authority)) return undefined;
  const path = target.slice(pathStart);
  // An absolute URL without a path is the root; with OPTIONS it means the server itself (RFC 9112, section 3.2.4).
  if (path === '') return { path: method === 'OPTIONS' ? '*' : '/', authority };
  return { path: path.startsWith('?') ? `/${path}` : path, authority };
}

function endOfAuthority(target: string, from: number): number {
  for (let at = from; at < target.length; at += 1) {
    const character = target.charAt(at);
    if (character === '/' || character === '?') return at;
  }
  return target.length;
}
