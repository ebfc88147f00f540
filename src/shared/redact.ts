/** Shorter values stay in the text: to replace them would hide much ordinary text and protect no real secret. */
const shortestSecret = 4;

/** Replaces each secret by `***`, also in its JSON-escaped form. Ignores values shorter than `shortestSecret`. */
export function redact(text: string, secrets: Iterable<string>): string {
  const values = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue;
    values.add(secret).add(JSON.stringify(secret).slice(1, -1));
  }
  // The longest first: if one secret contains another, replacing the short one first would leave the rest visible.
  return [...values].toSorted((a, b) => b.length - a.length).reduce((result, value) => result.replaceAll(value, '***'), text);
}
