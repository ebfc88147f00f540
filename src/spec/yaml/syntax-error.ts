import type { YAMLParseError } from 'yaml';
import { printable } from '../../shared/quote.ts';

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

/** What a syntax error means, in words that say what to do. `text` begins at its place. */
export function explainSyntaxError(error: YAMLParseError, text: string): Explanation {
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
