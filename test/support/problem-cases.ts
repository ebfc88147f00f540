/** A refused text, and its problems. */
export interface ProblemCase {
  readonly about: string;
  readonly source: string;
  /** As `problemsOf` gives them. */
  readonly problems: readonly string[];
}

/**
 * Reads cases written as blocks with an empty line between them: a line `# what it is about`, the text with `▸` at the
 * position of each problem, and a line `=> message (hint)` for each problem, in order of position.
 */
export function readProblemCases(text: string): readonly ProblemCase[] {
  return text
    .trim()
    .split(/\n\n+/)
    .map((block) => {
      const [about = '', ...lines] = block.split('\n');
      const marked = lines.filter((line) => !line.startsWith('=> ')).map((line) => `${line}\n`);
      const messages = lines.filter((line) => line.startsWith('=> ')).map((line) => line.slice(3));
      return {
        about: about.slice(2),
        source: marked.join('').replaceAll('▸', ''),
        problems: positionsOf(marked).map((position, index) => `${position} ${messages[index]}`),
      };
    });
}

function positionsOf(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line, index) => {
    const columns = [...line.matchAll(/▸/g)].map((match, before) => match.index - before + 1);
    return columns.map((column) => `${index + 1}:${column}`);
  });
}
