/** The fields of one line of CSV (RFC 4180). A quoted field holds no line end: no table of prices has one. */
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
    // What follows the closing quote is a comma or the end; anything between them is dropped.
    const end = line.indexOf(',', at);
    if (end === -1) break;
    at = end + 1;
  }
  return fields;
}

/** Reads fields of a row by the names of a header, whatever their order; a missing one is empty. */
export class CsvColumns {
  readonly #places: ReadonlyMap<string, number>;

  constructor(header: string) {
    this.#places = new Map(parseCsvLine(header.replace(/^\uFEFF/, '')).map((name, place) => [name.trim(), place]));
  }

  /** Of the given names, those that the header does not have. */
  missing(names: readonly string[]): readonly string[] {
    return names.filter((name) => !this.#places.has(name));
  }

  /** The trimmed field of a row. */
  field(row: readonly string[], name: string): string {
    const place = this.#places.get(name);
    return place === undefined ? '' : (row[place] ?? '').trim();
  }

  /** A number that is at least 0; undefined for an empty field and for everything else that is none. */
  amount(row: readonly string[], name: string): number | undefined {
    return readAmount(this.field(row, name));
  }
}

/** A number that is at least 0, written without signs; undefined for anything else. */
export function readAmount(text: string): number | undefined {
  return /^\d+(\.\d+)?(e-?\d+)?$/i.test(text) ? Number(text) : undefined;
}
