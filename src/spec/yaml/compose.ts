import { Composer, type Document, Lexer, Parser, type Scalar, type YAMLParseError, isScalar, visit } from 'yaml';
import type { SourceText } from '../source-text.ts';
import { convert } from './convert.ts';
import type { Fault } from './fault.ts';
import { findIndentationFaults } from './indentation.ts';
import type { YamlNode } from './node.ts';
import { printable } from '../../shared/text.ts';

/** Tokens in one file; a real one has a few thousand. Hostile files stay below half a second on a slow machine. */
const maxTokens = 60_000;

/** Levels on the parser's stack. The later stages are recursive; this limit keeps them from overflowing the stack. */
const maxDepth = 100;

/** Reported syntax errors, besides wrong indentation: later errors are mostly consequences of the first. */
const maxSyntaxFaults = 3;

const maxIndentationFaults = 20;

type Composed =
  | { readonly root: YamlNode; readonly faults: readonly [] }
  | { readonly root: undefined; readonly faults: readonly [Fault, ...Fault[]] };

/** Reads one YAML document. Never throws; time and memory are bounded whatever the text. */
export function composeYaml(source: SourceText): Composed {
  const control = unprintableFault(source.text);
  if (control !== undefined) return failed([control]);
  const tokens = parseTokens(source.text);
  if (!Array.isArray(tokens)) return failed([tokens]);
  const composer = new Composer({
    schema: 'failsafe',
    version: '1.2',
    uniqueKeys: false,
    resolveKnownTags: false,
    logLevel: 'silent',
  });
  const documents = [...composer.compose(tokens, true, source.text.length)];
  const [document, second] = documents;
  const errors = documents.flatMap((each) => each.errors);
  if (errors.length > 0 && document !== undefined) return failed(syntaxFaults(errors, document, source));
  if (second !== undefined) {
    const message = 'the file holds several YAML documents (separated by ---), one is expected';
    return failed([{ at: second.range[0], message, hint: 'Keep one task per file.' }]);
  }
  const contents = document?.contents ?? null;
  if (contents === null || (isScalar(contents) && contents.source === '')) return failed([{ at: 0, message: 'the file is empty' }]);
  const { root, faults } = convert(contents);
  return root === undefined ? failed(faults) : { root, faults: [] };
}

function failed(faults: readonly Fault[]): Composed {
  const [first = { at: 0, message: 'the file cannot be read as YAML' }, ...others] = faults;
  return { root: undefined, faults: [first, ...others] };
}

/** YAML allows tab and line breaks of all control characters. Others could also manipulate a terminal. */
function unprintableFault(text: string): Fault | undefined {
  const match = /[^\P{Cc}\t\n\r\u0085]/u.exec(text);
  if (match === null) return undefined;
  const code = (match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return { at: match.index, message: `the control character U+${code} is not allowed`, hint: 'Is it a text file? Save it as UTF-8.' };
}

type Token = Parameters<Composer['next']>[0];

function parseTokens(text: string): Token[] | Fault {
  const parser = new Parser();
  const tokens: Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    count += 1;
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > maxDepth) return { at: parser.offset, message: `the document is nested more than ${maxDepth} levels deep` };
    if (count > maxTokens) return { at: parser.offset, message: 'the document has more parts than any task file needs' };
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

function syntaxFaults(errors: readonly YAMLParseError[], document: Document.Parsed, source: SourceText): readonly Fault[] {
  const indentation = findIndentationFaults(source.text);
  const wrong = new Map<number, Fault>();
  const other = new Map<number, Fault>();
  const consequences: Fault[] = [];
  for (const error of errors) {
    const at = openingQuote(error, document) ?? error.pos[0];
    const { line } = source.position(at);
    // An error over several lines usually belongs to the last line, which the parser joined to the text above.
    const lastLine = source.position(Math.max(at, error.pos[1] - 1)).line;
    const lineFault = canBeIndentation(error) ? (indentation.get(lastLine) ?? indentation.get(line)) : undefined;
    const fault = { at, ...explainSyntaxError(error, source.text.slice(at)) };
    if (lineFault === 'consequence' || isSecondColonOfNextLine(error, source.text)) consequences.push(fault);
    else if (lineFault !== undefined) wrong.set(lineFault.at, lineFault);
    else if (!other.has(line) && other.size < maxSyntaxFaults) other.set(line, fault);
  }
  const wrongLines = new Set([...wrong.values()].map((fault) => source.position(fault.at).line));
  const faults = [
    ...[...wrong.values()].slice(0, maxIndentationFaults),
    ...[...other].flatMap(([line, fault]) => (wrongLines.has(line) ? [] : [fault])),
  ].toSorted((a, b) => a.at - b.at);
  return faults.length === 0 ? consequences.slice(0, 1) : faults;
}

const indentationCodes: ReadonlySet<YAMLParseError['code']> = new Set([
  'BAD_INDENT',
  'BLOCK_AS_IMPLICIT_KEY',
  'MISSING_CHAR',
  'MULTILINE_IMPLICIT_KEY',
  'UNEXPECTED_TOKEN',
]);

function canBeIndentation({ code, message }: YAMLParseError): boolean {
  return indentationCodes.has(code) && !message.startsWith('Missing closing') && !message.startsWith('Flow ');
}

/** A key that is indented too far turns the line above into the start of a key, so its own `:` is the first of two. */
function isSecondColonOfNextLine({ code, pos: [at] }: YAMLParseError, text: string): boolean {
  if (code !== 'BLOCK_AS_IMPLICIT_KEY' || text[at] === '\n') return false;
  const [line = ''] = text.slice(at).split('\n', 1);
  return !/:(?:\s|$)/.test(line) && !/^\s*-\s/.test(line);
}

/** The parser reports a missing quote at the end of the file; the start of the text is more useful. */
function openingQuote(error: YAMLParseError, document: Document.Parsed): number | undefined {
  if (error.code !== 'MISSING_CHAR' || !error.message.startsWith('Missing closing')) return undefined;
  let found: number | undefined;
  visit(document, {
    Scalar(_key, node: Scalar) {
      if (node.type?.startsWith('QUOTE') === true && node.range && node.range[1] >= error.pos[0] - 1) found ??= node.range[0];
    },
  });
  return found;
}

type Explanation = { readonly message: string; readonly hint?: string };

const quoteHint = "Put the text in quotes if it is meant to be text: '…'.";

const explanations: Readonly<Partial<Record<YAMLParseError['code'], Explanation>>> = {
  TAB_AS_INDENT: { message: 'a tab cannot be used for indentation', hint: 'Use spaces, two for each level.' },
  BAD_INDENT: { message: 'the indentation does not fit the lines above' },
  BAD_DQ_ESCAPE: {
    message: 'unknown escape sequence in double quotes',
    hint: 'Double the backslash, or use single quotes, which leave it alone.',
  },
  BAD_SCALAR_START: { message: 'text cannot begin with this character', hint: quoteHint },
  BLOCK_AS_IMPLICIT_KEY: { message: "a second ': ' on one line", hint: quoteHint },
  MULTILINE_IMPLICIT_KEY: { message: "a ':' is missing after this key, or the line below is not indented as it should be" },
  MULTIPLE_ANCHORS: { message: 'a value can have only one anchor (&name)' },
  MULTIPLE_TAGS: { message: 'a value can have only one tag (!name)' },
  BAD_ALIAS: { message: 'the name of this anchor or alias is missing or unclear', hint: quoteHint },
  ALIAS_PROPS: { message: 'an alias (*name) cannot have an anchor or a tag of its own' },
  BLOCK_IN_FLOW: { message: 'a list or map of several lines cannot stand inside [ ] or { }' },
  KEY_OVER_1024_CHARS: { message: "the ':' after a key must come within 1024 characters" },
  RESOURCE_EXHAUSTION: { message: 'the document is nested too deeply' },
};

/** Explains a syntax error and how to fix it. `text` begins at its position. */
function explainSyntaxError(error: YAMLParseError, text: string): Explanation {
  if (isMissingColon(error)) {
    const glued = /^([\w.-]+):[^\s/:]/.exec(text);
    if (glued !== null) return { message: "a space is missing after the ':'", hint: `Write: ${glued[1]}: VALUE` };
  }
  const [first = ''] = error.message.split('\n');
  if (first.startsWith('Flow ')) return { message: 'the closing ] or } is missing, or this line is not indented far enough' };
  const known = explanations[error.code];
  if (known !== undefined) return known;
  if (/^Missing closing .quote/.test(first)) return { message: 'the closing quote is missing' };
  if (first.startsWith('Implicit map keys')) return { message: "a ':' is missing after this key" };
  const words = printable(first.slice(0, 120));
  return { message: words === '' ? 'this is not valid YAML' : `this is not valid YAML: ${words.charAt(0).toLowerCase()}${words.slice(1)}` };
}

function isMissingColon({ code, message }: YAMLParseError): boolean {
  return code === 'MULTILINE_IMPLICIT_KEY' || (code === 'MISSING_CHAR' && message.startsWith('Implicit map keys'));
}
