// Controls, format marks and line separators: on a terminal they could move the cursor, hide text or reorder it.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text from a file or the network made safe to print: what cannot be seen becomes `·`, a tab a space. */
export function printable(text: string): string {
  return text.replaceAll('\t', ' ').replaceAll(invisible, '·');
}

/** The text in single quotes, printable, and cut to `limit` characters. */
export function quote(text: string, limit = 60): string {
  const shown = text.length > limit ? `${text.slice(0, limit)}…` : text;
  return `'${printable(shown)}'`;
}
