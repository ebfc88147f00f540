/** Shorter values would turn half of an ordinary text into stars without hiding anything worth it. */
const shortestSecret = 4;

/** The text with every given secret value (4 characters or longer, also as it stands inside JSON) replaced by `***`. */
export function redact(text: string, secrets: Iterable<string>): string {
  const values = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue;
    values.add(secret).add(JSON.stringify(secret).slice(1, -1));
  }
  // The longest first, so that a secret which holds another one leaves no rest behind.
  return [...values].toSorted((a, b) => b.length - a.length).reduce((result, value) => result.replaceAll(value, '***'), text);
}
