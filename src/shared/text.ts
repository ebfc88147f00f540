// Control characters, format marks, line separators: they could move a terminal's cursor, hide or reorder text.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Makes text from a file or the network safe to print: invisible characters become `·`, a tab becomes a space. */
export function printable(text: string): string {
  return text.replaceAll('\t', ' ').replaceAll(invisible, '·');
}

/** The text in single quotes, printable and truncated to `limit` characters. */
export function quote(text: string, limit = 60): string {
  const shown = text.length > limit ? `${text.slice(0, limit)}…` : text;
  return `'${printable(shown)}'`;
}

/** Turns another program's message into a sentence: a Kubernetes API server, for one, answers without a full stop. */
export function asSentence(text: string): string {
  const said = text.trim();
  return /[.!?]$/.test(said) ? said : `${said}.`;
}

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
