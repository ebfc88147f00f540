import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** One page of the documentation. */
export interface Page {
  readonly path: string;
  readonly text: string;
  /** Without code blocks and inline code; line numbers are kept. */
  readonly prose: string;
  /** Anchors of the headings, as GitHub names them. */
  readonly anchors: ReadonlySet<string>;
}

/** A link to a file in this checkout. */
export interface PageLink {
  readonly line: number;
  /** From the root of the checkout. */
  readonly file: string;
  readonly anchor: string | undefined;
}

const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');

function anchorOf(heading: string): string {
  const words = heading.replaceAll('`', '').toLowerCase();
  return words
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

function readPage(path: string): Page {
  const text = readFileSync(path, 'utf8');
  const withoutBlocks = text.replaceAll(/^(```|~~~)[\s\S]*?^\1.*$/gm, blank);
  const anchors = [...withoutBlocks.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
  return { path, text, prose: withoutBlocks.replaceAll(/`[^`\n]*`/g, blank), anchors: new Set(anchors) };
}

/** Every page for readers, including generated ones. */
export const pages: readonly Page[] = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md']).toSorted().map(readPage);

/** Returns links of a page that lead into this checkout; links to other websites are left out. */
export function linksOf({ path, prose }: Page): readonly PageLink[] {
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap((match) => {
    const [target = '', anchor] = (match[1] ?? '').split('#');
    if (/^[a-z]+:/.test(target)) return [];
    const file = target === '' ? path : normalize(join(dirname(path), target));
    return [{ line: prose.slice(0, match.index).split('\n').length, file, anchor }];
  });
}

/** A `svc` command as a page shows it. */
export interface ShownCommand {
  readonly line: number;
  /** The words after `svc`. */
  readonly words: readonly string[];
}

/** Finds every `svc …` in code blocks and inline code, up to a pipe, a comment or the end of a substitution. */
export function commandsOf({ text }: Page): readonly ShownCommand[] {
  const code = [...text.matchAll(/^```(?:sh|console|bash)\n([\s\S]*?)^```/gm), ...text.matchAll(/`([^`\n]+)`/g)];
  return code.flatMap((block) => {
    const offset = block.index + block[0].indexOf(block[1] ?? '');
    return [...(block[1] ?? '').matchAll(/(?:^|[\s(`"$])(?:\.\/)?svc((?: +[^\s|#;&)"`]+)+)/gm)].map((match) => ({
      line: text.slice(0, offset + match.index).split('\n').length,
      words: (match[1] ?? '').trim().split(/ +/),
    }));
  });
}
