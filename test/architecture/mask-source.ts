/** A source text with the same length and lines as the original, partly blanked, so that positions stay valid. */
export interface MaskedSource {
  /** Comments blanked, strings kept: for finding imports. */
  readonly withoutComments: string;
  /** Comments and string contents blanked: for matching code only. */
  readonly codeOnly: string;
}

/** After one of these a slash begins a regular expression; after anything else it divides. */
const beforeRegex = /(?:^|[=(,:;!&|?{}[\]+\-*%<>~^]|\b(?:return|typeof|case|in|of|do|else|void|await|yield))\s*$/;

const quoted = /(['"])(?:\\.|(?!\1)[^\\\n])*\1/y;
const regex = /\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y;
const lineComment = /\/\/[^\n]*/y;
const blockComment = /\/\*[\s\S]*?\*\//y;
const templateText = /(?:\\[\s\S]|(?!\$\{)[^\\`])*/y;

const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');

/** Handles the TypeScript of this code base only; it is no parser. */
export function maskSource(text: string): MaskedSource {
  let withoutComments = '';
  let codeOnly = '';
  let at = 0;
  /** For each open `${` the depth of braces inside it. */
  const templates: number[] = [];

  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  const take = (part: string, kind: 'code' | 'string' | 'comment'): void => {
    withoutComments += kind === 'comment' ? blank(part) : part;
    codeOnly += kind === 'code' ? part : blank(part);
    at += part.length;
  };
  const takeTemplateText = (): void => {
    take(match(templateText) ?? '', 'string');
    if (text.startsWith('${', at)) {
      take('${', 'code');
      templates.push(0);
    } else if (at < text.length) take('`', 'code');
  };

  while (at < text.length) {
    const char = text.charAt(at);
    const comment = char === '/' ? (match(lineComment) ?? match(blockComment)) : undefined;
    const string = char === "'" || char === '"' ? match(quoted) : undefined;
    const pattern = char === '/' && comment === undefined && beforeRegex.test(codeOnly.slice(-40)) ? match(regex) : undefined;
    const depth = templates.at(-1);
    if (comment !== undefined) take(comment, 'comment');
    else if (pattern !== undefined) take(pattern, 'string');
    else if (string !== undefined) {
      // The quotes stay, so that a rule can still match a literal.
      take(char, 'code');
      take(string.slice(1, -1), 'string');
      take(char, 'code');
    } else if (char === '`') {
      take(char, 'code');
      takeTemplateText();
    } else if (char === '}' && depth === 0) {
      templates.pop();
      take(char, 'code');
      takeTemplateText();
    } else {
      if (depth !== undefined && char === '{') templates[templates.length - 1] = depth + 1;
      if (depth !== undefined && char === '}') templates[templates.length - 1] = depth - 1;
      take(char, 'code');
    }
  }
  return { withoutComments, codeOnly };
}
