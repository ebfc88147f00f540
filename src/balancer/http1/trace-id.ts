import { FieldKind } from './field-kinds.ts';
import type { RequestHead } from './request-head.ts';

/** Version, trace, parent and flags (W3C Trace Context, section 3.2); versions to come may add more behind a dash. */
const format = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;
const lengthOfVersion00 = 55;
const maxLength = 256;

/** The id of the trace that the request is part of: 32 hex digits; undefined without exactly one valid `traceparent`. */
export function givenTraceId({ fields }: RequestHead): string | undefined {
  const index = fields.kinds.indexOf(FieldKind.traceparent);
  if (index < 0 || fields.kinds.lastIndexOf(FieldKind.traceparent) !== index) return undefined;
  const value = fields.value(index);
  if (value.length > maxLength || (value.startsWith('00') && value.length !== lengthOfVersion00)) return undefined;
  return format.exec(value)?.[1];
}
