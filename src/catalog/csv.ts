/** The fields of a CSV line (RFC 4180). Quoted fields cannot contain line ends: no price table has any. */
export function parseCsvLine(line: string): readonly string[] {
  if (!line.includes('"')) return line.split(',');
  const fields: string[] = [];
  let at = 0;
  while (at <= line.length) {
    if (line[at] !== '"') {
      const end = line.indexOf(',', at);
      fields.push(line.slice(at, end === -1 ? line.length : end));
      if (end === -1) break;
      at = end + 1;
      continue;
    }
    let field = '';
    for (at += 1; at < line.length; at += 1) {
      if (line[at] !== '"') field += line[at];
      else if (line[at + 1] === '"') {
        field += '"';
        at += 1;
      } else break;
    }
    fields.push(field);
    // Text between the closing quote and the next comma is dropped.
    const end = line.indexOf(',', at);
    if (end === -1) break;
    at = end + 1;
  }
  return fields;
}

/** Reads fields of a row by the header's names, in any order. */
export class CsvColumns {
  readonly #columns: ReadonlyMap<string, number>;

  constructor(header: string) {
    this.#columns = new Map(parseCsvLine(header.replace(/^\uFEFF/, '')).map((name, column) => [name.trim(), column]));
  }

  /** The given names that the header lacks. */
  missing(names: readonly string[]): readonly string[] {
    return names.filter((name) => !this.#columns.has(name));
  }

  /** The trimmed field; empty when missing. */
  field(row: readonly string[], name: string): string {
    const column = this.#columns.get(name);
    return column === undefined ? '' : (row[column] ?? '').trim();
  }

  /** A number of at least 0; undefined for any other field. */
  amount(row: readonly string[], name: string): number | undefined {
    return readAmount(this.field(row, name));
  }
}

/** A number of at least 0, written without signs; undefined for any other text. */
export function readAmount(text: string): number | undefined {
  return /^\d+(\.\d+)?(e-?\d+)?$/i.test(text) ? Number(text) : undefined;
}
