import type { SessionKey } from '../../domain/task.ts';
import { FieldKind } from './field-kinds.ts';
import type { HeadFields } from './head-fields.ts';

/** The version that `x-svc-version` asks for; undefined unless there is exactly one such field, with a number. */
export function pinnedVersion(fields: HeadFields): number | undefined {
  const index = fields.kinds.indexOf(FieldKind.version);
  if (index < 0 || fields.kinds.lastIndexOf(FieldKind.version) !== index) return undefined;
  const value = fields.value(index);
  return /^[1-9]\d{0,14}$/.test(value) ? Number(value) : undefined;
}

/** The session that a request names; undefined without one. */
export function sessionOf(fields: HeadFields, key: SessionKey): string | undefined {
  if ('header' in key) {
    const index = fields.indexOfName(key.header.toLowerCase());
    return index < 0 ? undefined : nonEmpty(fields.value(index));
  }
  // A client of HTTP/1.1 sends one field. Proxies may split it, as HTTP/2 allows.
  for (let index = fields.indexOfName('cookie'); index >= 0; index = fields.indexOfName('cookie', index + 1)) {
    const value = cookieValue(fields.value(index), key.cookie);
    if (value !== undefined) return nonEmpty(value);
  }
  return undefined;
}

const nonEmpty = (value: string): string | undefined => (value === '' ? undefined : value);

function cookieValue(cookies: string, name: string): string | undefined {
  for (let at = 0; at < cookies.length;) {
    const semicolon = cookies.indexOf(';', at);
    const end = semicolon < 0 ? cookies.length : semicolon;
    while (cookies.charAt(at) === ' ') at += 1;
    if (cookies.startsWith(name, at) && cookies.charAt(at + name.length) === '=') return cookies.slice(at + name.length + 1, end).trimEnd();
    at = end + 1;
  }
  return undefined;
}
