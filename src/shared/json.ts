/** Whether an untrusted value, such as parsed JSON, is an object with fields. A list does not count. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of a JSON text; undefined when invalid. The parser's message quotes the text, so it is dropped. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Renames top-level fields that earlier versions stored under other names. `names`: current names by former ones. */
export function withCurrentNames(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [names.get(name) ?? name, field]));
}

/** JSON text that is equal for equal data: keys are sorted, and fields that are undefined are left out. */
export function canonicalJson(value: object): string {
  return JSON.stringify(withSortedKeys(value));
}

/** Not as a replacer of `JSON.stringify`, whose calls take most of its time. */
function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withSortedKeys(item));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, withSortedKeys(value[key])]),
  );
}
