import { noConnectionOptions, readConnectionField, type ConnectionOptions } from './connection-options.ts';
import { readContentLength, transferEncodingFault } from './body-length.ts';
import type { Fault } from './faults.ts';
import { FieldKind, fieldKind } from './field-kinds.ts';
import type { HeadScanner } from './head-scanner.ts';

/** The fields of one head, as they came: case, order and duplicates kept. The three lists run in parallel. */
export interface HeadFields {
  readonly names: readonly string[];
  readonly values: readonly string[];
  readonly kinds: readonly FieldKind[];
  readonly connection: ConnectionOptions;
  /** Of the one `Content-Length`; undefined when there is none. */
  readonly contentLength: number | undefined;
  readonly isChunked: boolean;
}

/** Takes the fields out of a scanned head and applies the framing rules that requests and responses share. */
export function readFields(scanner: HeadScanner): HeadFields | Fault {
  const { text, marks, fieldCount, minorVersion } = scanner;
  const names: string[] = [];
  const values: string[] = [];
  const kinds: FieldKind[] = [];
  let connection = noConnectionOptions;
  let contentLength: number | undefined;
  let isChunked = false;
  for (let mark = 0; mark < fieldCount * 4; mark += 4) {
    const name = text.slice(marks[mark], marks[mark + 1]);
    const value = text.slice(marks[mark + 2], marks[mark + 3]);
    const kind = fieldKind(name);
    names.push(name);
    values.push(value);
    kinds.push(kind);
    if (kind === FieldKind.plain) continue;
    if (kind === FieldKind.contentLength) {
      if (contentLength !== undefined) return 'bad_content_length';
      contentLength = readContentLength(value);
      if (contentLength === undefined) return 'bad_content_length';
    } else if (kind === FieldKind.transferEncoding) {
      const fault = isChunked ? 'bad_transfer_encoding' : transferEncodingFault(value, minorVersion);
      if (fault !== undefined) return fault;
      isChunked = true;
    } else if (kind === FieldKind.connection) {
      const options = readConnectionField(value, connection);
      if (options === undefined) return 'bad_connection';
      connection = options;
    } else if (kind === FieldKind.forged) return 'forged_field';
  }
  if (isChunked && contentLength !== undefined) return 'both_lengths';
  return { names, values, kinds, connection, contentLength, isChunked };
}

/** The value of the first field of a kind. */
export function fieldOfKind(fields: HeadFields, kind: FieldKind): string | undefined {
  const index = fields.kinds.indexOf(kind);
  return index < 0 ? undefined : fields.values[index];
}
