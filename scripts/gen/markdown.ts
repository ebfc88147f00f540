const generatedNote = '<!-- Written by `npm run gen`. Change the source it names, not this page. -->';

const line = (cells: readonly string[]): string => `| ${cells.map(escapeCell).join(' | ')} |`;

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/** A Markdown table; bars in cells are escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

/** A page: its parts separated by empty lines. */
export function page(...parts: readonly string[]): string {
  return `${[generatedNote, ...parts].join('\n\n')}\n`;
}
