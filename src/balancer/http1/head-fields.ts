import { readContentLength, transferEncodingFault } from './body-length.ts';
import type { Fault } from './faults.ts';
import { FieldKind, fieldKindAt, isGuardedName } from './field-kinds.ts';
import type { HeadScanner } from './head-scanner.ts';
import { HT, SP, isToken } from './octets.ts';

/** See `HeadScanner.marks`. */
const marksPerField = 4;

/** The fields of one head, as they came: case, order, duplicates. Names and values become strings on request. */
export class HeadFields {
  readonly kinds: readonly FieldKind[];
  readonly connection: ConnectionOptions;
  readonly contentLength: number | undefined;
  readonly isChunked: boolean;
  readonly #text: string;
  readonly #marks: readonly number[];

  constructor(
    scanner: HeadScanner,
    kinds: readonly FieldKind[],
    connection: ConnectionOptions,
    contentLength: number | undefined,
    isChunked: boolean,
  ) {
    this.#text = scanner.text;
    this.#marks = scanner.marks.slice(0, kinds.length * marksPerField);
    this.kinds = kinds;
    this.connection = connection;
    this.contentLength = contentLength;
    this.isChunked = isChunked;
  }

  name(index: number): string {
    return this.#text.slice(this.#marks[index * marksPerField], this.#marks[index * marksPerField + 1]);
  }

  value(index: number): string {
    return this.#text.slice(this.#marks[index * marksPerField + 2], this.#marks[index * marksPerField + 3]);
  }

  firstOf(kind: FieldKind): string | undefined {
    const index = this.kinds.indexOf(kind);
    return index < 0 ? undefined : this.value(index);
  }

  /** The index of the first field of that name from `start` on; -1 when there is none. */
  indexOfName(lowerName: string, start = 0): number {
    for (let index = start; index < this.kinds.length; index += 1) {
      const from = this.#marks[index * marksPerField] ?? 0;
      const to = this.#marks[index * marksPerField + 1] ?? 0;
      if (to - from === lowerName.length && this.#text.slice(from, to).toLowerCase() === lowerName) return index;
    }
    return -1;
  }

  allOf(kind: FieldKind): readonly string[] {
    return this.kinds.flatMap((other, index) => (other === kind ? [this.value(index)] : []));
  }

  /**
   * Plain fields and kinds that pass `isKept`, unless `Connection` nominates them, as `Name: value` lines with CRLF.
   * Consecutive lines already in this form are copied as one text.
   */
  linesToForward(isKept: (kind: FieldKind) => boolean): string {
    const { nominated } = this.connection;
    let out = '';
    let runStart = -1;
    let runEnd = -1;
    for (let index = 0; index < this.kinds.length; index += 1) {
      const kind = this.kinds[index] ?? FieldKind.forged;
      if (kind !== FieldKind.plain && !isKept(kind)) continue;
      if (nominated?.has(this.name(index).toLowerCase())) continue;
      const mark = index * marksPerField;
      const start = this.#marks[mark] ?? 0;
      const end = this.#marks[mark + 3] ?? 0;
      if (!this.#isCanonical(mark)) {
        out += `${this.#text.slice(runStart, runEnd)}${this.name(index)}: ${this.value(index)}\r\n`;
        runStart = -1;
        runEnd = -1;
      } else if (start === runEnd) runEnd = end + 2;
      else {
        out += this.#text.slice(runStart, runEnd);
        runStart = start;
        runEnd = end + 2;
      }
    }
    return runEnd < 0 ? out : out + this.#text.slice(runStart, runEnd);
  }

  /** One space after the colon, nothing after the value. */
  #isCanonical(mark: number): boolean {
    const colon = this.#marks[mark + 1] ?? 0;
    const end = this.#marks[mark + 3] ?? 0;
    return this.#marks[mark + 2] === colon + 2 && this.#text.charCodeAt(colon + 1) === 0x20 && this.#text.charCodeAt(end) === 0x0d;
  }
}

/** Takes the fields out of a scanned head and applies the framing rules that requests and responses share. */
export function readFields(scanner: HeadScanner): HeadFields | Fault {
  const { text, marks, fieldCount, minorVersion } = scanner;
  const kinds: FieldKind[] = [];
  const hasUnderscore = text.includes('_');
  let connection = noConnectionOptions;
  let contentLength: number | undefined;
  let isChunked = false;
  for (let mark = 0; mark < fieldCount * marksPerField; mark += marksPerField) {
    const kind = fieldKindAt(text, marks[mark] ?? 0, marks[mark + 1] ?? 0, hasUnderscore);
    kinds.push(kind);
    if (kind === FieldKind.contentLength) {
      if (contentLength !== undefined) return 'bad_content_length';
      contentLength = readContentLength(text.slice(marks[mark + 2], marks[mark + 3]));
      if (contentLength === undefined || hasTab(scanner, mark)) return 'bad_content_length';
    } else if (kind === FieldKind.transferEncoding) {
      const fault = isChunked ? 'bad_transfer_encoding' : transferEncodingFault(text.slice(marks[mark + 2], marks[mark + 3]), minorVersion);
      if (fault !== undefined) return fault;
      if (hasTab(scanner, mark)) return 'bad_transfer_encoding';
      isChunked = true;
    } else if (kind === FieldKind.connection) {
      const options = readConnectionField(text.slice(marks[mark + 2], marks[mark + 3]), connection);
      if (options === undefined) return 'bad_connection';
      connection = options;
    } else if (kind === FieldKind.forged) return 'forged_field';
  }
  if (isChunked && contentLength !== undefined) return 'both_lengths';
  return new HeadFields(scanner, kinds, connection, contentLength, isChunked);
}

/** RFC 9110, section 5.6.3, allows tabs around a value, but some parsers treat them as part of the value. */
function hasTab({ text, marks }: HeadScanner, mark: number): boolean {
  return text.slice((marks[mark + 1] ?? 0) + 1, text.indexOf('\r', marks[mark + 3])).includes('\t');
}

/** Whether the one `Upgrade` field names WebSocket and nothing else. */
export function isWebSocketUpgrade(fields: HeadFields): boolean {
  const [value, ...more] = fields.allOf(FieldKind.upgrade);
  return more.length === 0 && value?.toLowerCase() === 'websocket';
}

interface ConnectionOptions {
  readonly close: boolean;
  readonly keepAlive: boolean;
  /** Lower-case names of the fields that end at the next peer; undefined when there are none, as usual. */
  readonly nominated: ReadonlySet<string> | undefined;
}

const noConnectionOptions: ConnectionOptions = { close: false, keepAlive: false, nominated: undefined };
const closeOnly: ConnectionOptions = { close: true, keepAlive: false, nominated: undefined };
const keepAliveOnly: ConnectionOptions = { close: false, keepAlive: true, nominated: undefined };

/** Adds one more `Connection` field; undefined when it is malformed or nominates a guarded field. */
function readConnectionField(value: string, before: ConnectionOptions): ConnectionOptions | undefined {
  if (before === noConnectionOptions) {
    if (value === 'keep-alive' || value === 'Keep-Alive') return keepAliveOnly;
    if (value === 'close') return closeOnly;
  }
  let { close, keepAlive } = before;
  const nominated = new Set(before.nominated);
  for (const element of value.split(',')) {
    const name = withoutBlanks(element).toLowerCase();
    if (name === '') continue;
    if (!isToken(name) || isGuardedName(name)) return undefined;
    if (name === 'close') close = true;
    else if (name === 'keep-alive') keepAlive = true;
    else nominated.add(name);
  }
  return { close, keepAlive, nominated: nominated.size === 0 ? undefined : nominated };
}

/** Not `trim`, which also strips other octets as white space, such as the no-break space. */
function withoutBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(text, from)) from += 1;
  while (to > from && isBlank(text, to - 1)) to -= 1;
  return text.slice(from, to);
}

function isBlank(text: string, at: number): boolean {
  const octet = text.charCodeAt(at);
  return octet === SP || octet === HT;
}
