import { isToken, valueOctets } from '../http1/octets.ts';

/** The fields of an HTTP/2 message, pseudo-fields first: name, value, name, value. Names are in lower case. */
export type FieldList = readonly string[];

/** Fields that belong to an HTTP/1.1 connection and make an HTTP/2 message malformed (RFC 9113, section 8.2.2). */
const connectionSpecific: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** By the lower-case name. */
export function isConnectionSpecific(name: string): boolean {
  return connectionSpecific.has(name);
}

/** Whether a value has only valid octets. HTTP/2 carries any octets, and one of them could end a line of HTTP/1.1. */
export function isFieldValue(value: string): boolean {
  for (let at = 0; at < value.length; at += 1) if (valueOctets[value.charCodeAt(at)] !== 1) return false;
  return true;
}

/** Whether a value begins or ends with white space, which makes the message malformed (RFC 9113, section 8.2.1). */
export function hasOuterSpace(value: string): boolean {
  return value.length > 0 && (isSpace(value.charCodeAt(0)) || isSpace(value.charCodeAt(value.length - 1)));
}

const isSpace = (octet: number): boolean => octet === 0x20 || octet === 0x09;

/** Whether a line of HTTP/1.1 for the field would be parsed as exactly that field. */
export function isWritableField(name: string, value: string): boolean {
  return isToken(name) && isFieldValue(value);
}

/** The fields of an HTTP/1.1 head that the balancer wrote (first line, lines, empty line), in the form of HTTP/2. */
export function fieldsOfHead(head: string): string[] {
  const fields: string[] = [];
  let at = head.indexOf('\r\n') + 2;
  for (;;) {
    const end = head.indexOf('\r\n', at);
    if (end <= at) return fields;
    const colon = head.indexOf(':', at);
    const name = head.slice(at, colon).toLowerCase();
    if (!isConnectionSpecific(name)) fields.push(name, head.slice(colon + 1, end).trim());
    at = end + 2;
  }
}

/** For calls of `node:http2` that take no list. A peer may name a field `constructor` or `__proto__`. */
export function fieldsAsObject(fields: FieldList): Record<string, string[]> {
  const values = new Map<string, string[]>();
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] ?? '';
    const value = fields[index + 1] ?? '';
    const before = values.get(name);
    if (before === undefined) values.set(name, [value]);
    else before.push(value);
  }
  return Object.fromEntries(values);
}
