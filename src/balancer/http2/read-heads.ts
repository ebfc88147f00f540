import { noTrailers, type Trailers } from '../http1/chunked-decoder.ts';
import type { Fault } from '../http1/faults.ts';
import { mayTrail } from '../http1/field-kinds.ts';
import { faulted, HeadScanner, needMore } from '../http1/head-scanner.ts';
import type { HeadLimits } from '../http1/limits.ts';
import { isToken } from '../http1/octets.ts';
import { readRequestHead, type RequestHead } from '../http1/request-head.ts';
import type { RequestLine } from '../http1/request-parser.ts';
import { readResponseHead, type ResponseHead } from '../http1/response-head.ts';
import { hasOuterSpace, isConnectionSpecific, isFieldValue, isWritableField, type FieldList } from './field-lists.ts';

/**
 * HTTP/2 heads are written as HTTP/1.1 and read by the strict parser: the same rules apply, and no field can become two
 * lines on its way to a replica of HTTP/1.1.
 */

/** The message breaks a rule of HTTP/2 itself: its stream is reset (RFC 9113, section 8.1.1). */
export const malformed = 'malformed';

/** The pseudo-fields, and the fields as lines of HTTP/1.1. */
interface Lines {
  readonly pseudo: ReadonlyMap<string, string>;
  readonly text: string;
  readonly hasLength: boolean;
}

/** Undefined when the message is malformed. */
function readLines(fields: FieldList): Lines | undefined {
  const pseudo = new Map<string, string>();
  const cookies: string[] = [];
  let text = '';
  let hasLength = false;
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] ?? '';
    const value = fields[index + 1] ?? '';
    if (name.startsWith(':')) {
      if (pseudo.has(name) || text !== '' || !isFieldValue(value)) return undefined;
      pseudo.set(name, value);
    } else if (!isWritableField(name, value) || hasOuterSpace(value) || isConnectionSpecific(name)) return undefined;
    // Browsers send each cookie as a field of its own; HTTP/1.1 knows one (RFC 9113, section 8.2.3).
    else if (name === 'cookie') cookies.push(value);
    else {
      hasLength ||= name === 'content-length';
      text += `${name}: ${value}\r\n`;
    }
  }
  if (cookies.length > 0) text += `cookie: ${cookies.join('; ')}\r\n`;
  return { pseudo, text, hasLength };
}

/** `isEnded`: no body follows. */
export function readRequestFields(fields: FieldList, isEnded: boolean, limits: HeadLimits): RequestHead | Fault | typeof malformed {
  const lines = readLines(fields);
  const method = lines?.pseudo.get(':method') ?? '';
  if (lines === undefined || !isToken(method)) return malformed;
  if (method === 'CONNECT') return 'method_not_allowed';
  const path = lines.pseudo.get(':path') ?? '';
  // The strict parser would also accept the absolute form, which has no meaning in HTTP/2.
  if (path !== '*' && !path.startsWith('/')) return 'bad_target';
  const host = lines.pseudo.get(':authority');
  let text = host === undefined ? lines.text : withHost(lines.text, host);
  if (!isEnded && !lines.hasLength) text += 'transfer-encoding: chunked\r\n';
  const scanner = new HeadScanner('request', limits);
  const fault = scanAll(scanner, `${method} ${path} HTTP/1.1\r\n${text}\r\n`);
  return fault ?? readRequestHead(scanner);
}

/** The line that a request without a malformed field would have in HTTP/1.1. */
export function requestLineOf(fields: FieldList): RequestLine {
  const valueOf = (name: string): string => fields[fields.indexOf(name) + 1] ?? '';
  return { method: valueOf(':method'), target: valueOf(':path') };
}

/** A `host` field must equal `:authority` when both are sent (RFC 9113, section 8.3.1). */
function withHost(lines: string, authority: string): string {
  const given = /^host: (.*)\r\n/m.exec(lines);
  if (given === null) return `host: ${authority}\r\n${lines}`;
  // The strict parser refuses two of them, or two that differ.
  return given[1]?.toLowerCase() === authority.toLowerCase() ? lines : `host: ${authority}\r\n${lines}`;
}

/** `isHead`: the request's method was HEAD. A fault is the replica's. */
export function readResponseFields(fields: FieldList, isHead: boolean, limits: HeadLimits): ResponseHead | Fault {
  const lines = readLines(fields);
  const status = lines?.pseudo.get(':status');
  if (lines === undefined || status === undefined) return 'bad_status_line';
  const length = lines.hasLength || status.startsWith('1') || status === '204' ? '' : 'transfer-encoding: chunked\r\n';
  const scanner = new HeadScanner('status', limits);
  const fault = scanAll(scanner, `HTTP/1.1 ${status} \r\n${lines.text}${length}\r\n`);
  return fault ?? readResponseHead(scanner, isHead, false);
}

function scanAll(scanner: HeadScanner, text: string): Fault | undefined {
  const bytes = Buffer.from(text, 'latin1');
  const end = scanner.scan(bytes, 0);
  if (end === faulted) return scanner.fault;
  return end === needMore || end !== bytes.length ? 'head_too_large' : undefined;
}

/** The trailer fields that may be passed on. */
export function readTrailerFields(fields: FieldList): Trailers {
  const trailers: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] ?? '';
    const value = fields[index + 1] ?? '';
    if (isWritableField(name, value) && !hasOuterSpace(value) && mayTrail(name)) trailers.push(name, value);
  }
  return trailers.length === 0 ? noTrailers : trailers;
}
