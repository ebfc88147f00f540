import { quote } from '../../shared/text.ts';
import type { Fault } from './fault.ts';

/** An open element at one depth of indentation, at the start of a line. */
interface Level {
  readonly indent: number;
  readonly kind: 'key' | 'item' | 'text';
  /** For a key, its text; for text, the key that it belongs to. */
  readonly name: string;
  /** Whether a value follows the `:` on the same line; then the key cannot have a block below it. */
  readonly hasValue: boolean;
  /** Whether its line is itself indented wrongly. */
  readonly isWrong: boolean;
}

/** `consequence`: the line only follows a wrong one. */
type LineFault = Fault | 'consequence';

/**
 * Lines whose indentation matches no line above, and the comments before them, by line number from 1. Works on lines,
 * not on a parsed document: use it only for texts that are not YAML, and lines where the parser failed. Does not check
 * bracketed lists and maps, and quoted text over several lines.
 */
export function findIndentationFaults(text: string): ReadonlyMap<number, LineFault> {
  const found = new Map<number, LineFault>();
  const levels = new Levels();
  let at = 0;
  // The parser may fail on the comments before a line.
  let first = 1;
  for (const [index, line] of text.split('\n').entries()) {
    const fault = levels.read(line.replace(/\r$/, ''), at);
    if (fault !== undefined) for (let number = first; number <= index + 1; number += 1) found.set(number, fault);
    if (!/^\s*(?:#|$)/.test(line)) first = index + 2;
    at += line.length + 1;
  }
  return found;
}

/** A key at the start of a line, quoted or not, with the text after its colon. */
const keyLine = /^("[^"]*"|'[^']*'|[^\s#"'[\]{},&*!|>%@`-][^#]*?|-[^\s#:]*):(?:\s+(.*))?$/;
const blockHeader = /^(?:[&!]\S+\s+)*[|>][-+0-9]*\s*(?:#.*)?$/;

/** Brackets or quotes that do not close on their line. */
const openValue = /^(?:\[(?!.*\])|\{(?!.*\})|"(?!.*")|'(?!.*'))/;

class Levels {
  /** From the outermost one, indentation growing. */
  #open: readonly Level[] = [];
  /** The field whose block text (`|`, `>`) is being read. Its indentation is unknown before the first line. */
  #block: { readonly owner: Level; readonly indent: number | undefined } | undefined;

  read(line: string, at: number): LineFault | undefined {
    const content = line.trimStart();
    if (content === '') return undefined;
    const indent = line.length - content.length;
    const emptyBlock = this.#block !== undefined && this.#block.indent === undefined ? this.#block.owner : undefined;
    if (this.#isBlockText(indent)) return undefined;
    if (content.startsWith('#') || /^(?:---|\.\.\.|%)/.test(line)) return undefined;
    const isItem = /^-(?:\s|$)/.test(content);
    const key = isItem ? null : keyLine.exec(content);
    if (!isItem && key === null) {
      return this.#judgeText(indent, at, emptyBlock);
    }
    const fault = this.#judge(indent, isItem, at);
    this.#enter(indent, content, fault !== undefined);
    return fault;
  }

  #isBlockText(indent: number): boolean {
    if (this.#block === undefined) return false;
    const { owner, indent: known } = this.#block;
    if (indent >= (known ?? owner.indent + 1)) {
      if (known === undefined) {
        this.#block = { owner, indent };
        this.#open = [...this.#open, { indent, kind: 'text', name: owner.name, hasValue: true, isWrong: false }];
      }
      return true;
    }
    this.#block = undefined;
    return false;
  }

  #judge(indent: number, isItem: boolean, at: number): LineFault | undefined {
    const last = this.#open.at(-1);
    if (last === undefined) return undefined;
    const kind = isItem ? 'item' : 'key';
    const same = this.#open.findLast((level) => level.indent === indent);
    if (same?.isWrong === true) return 'consequence';
    // Below a key without a value, a list may stand at the indentation of the key.
    if (same?.kind === kind || (same?.kind === 'key' && same === last && !same.hasValue)) return undefined;
    const position = at + indent;
    if (same !== undefined && same.kind !== 'text') return { at: position, ...this.#wrongKind(indent, isItem) };
    if (indent > last.indent) {
      if (!last.hasValue) return undefined;
      return { at: position, message: 'this line is indented further than the line above', hint: this.#tooDeep(last, isItem) };
    }
    return { at: position, message: `the indentation fits none of the lines above`, hint: this.#fitting(indent, isItem) };
  }

  /** Judges a line that is neither key nor item: wrong only where it should belong to a block of text. */
  #judgeText(indent: number, at: number, emptyBlock: Level | undefined): Fault | undefined {
    const last = this.#open.at(-1);
    const block = emptyBlock ?? (last?.kind === 'text' && indent < last.indent ? last : undefined);
    if (block === undefined) return undefined;
    const name = quote(block.name);
    const depth = block.kind === 'text' ? block.indent : block.indent + 2;
    const message =
      emptyBlock === undefined
        ? `this line is indented less than the text of ${name} above`
        : `the text of ${name} must be indented further than ${name} itself`;
    return { at: at + indent, message, hint: `Begin it, and the lines of the text below it, after ${spaces(depth)}.` };
  }

  #wrongKind(indent: number, isItem: boolean): { readonly message: string; readonly hint: string } {
    if (!isItem) {
      const inner = this.#open.find((level) => level.indent > indent && level.kind === 'key');
      const deeper = inner === undefined ? 'Indent it' : `Begin it ${edgeOrSpaces(inner.indent)}, like ${quote(inner.name)},`;
      return {
        message: 'a key stands among the items of a list',
        hint: `${deeper} to put it into the item above, or begin it with '- '.`,
      };
    }
    const item = this.#open.findLast((level) => level.kind === 'item');
    const hint =
      item === undefined
        ? "Remove the '- ', or put the list below a key that has no value."
        : `Begin it ${edgeOrSpaces(item.indent)}, like the '-' above, to make it the next item.`;
    return { message: "an item of a list ('- ') stands among keys", hint };
  }

  #tooDeep(last: Level, isItem: boolean): string {
    const name = quote(last.name);
    if (isItem) return `To put a list below ${name}, remove the value there.`;
    const remove = /^(?:run|setup)$/.test(last.name)
      ? `for text of several lines, write | behind '${last.name}:'`
      : `to put it below ${name}, remove the value there`;
    return `Begin it ${edgeOrSpaces(last.indent)}, like ${name}; ${remove}.`;
  }

  #fitting(indent: number, isItem: boolean): string {
    const able = this.#open.filter((level) => !level.isWrong && (level.kind === 'text' || (level.kind === 'item') === isItem));
    const choices = [able.find((level) => level.indent > indent), able.findLast((level) => level.indent < indent)];
    const words = choices.flatMap((level) => (level === undefined ? [] : [`${edgeOrSpaces(level.indent)}, like ${nameOf(level)}`]));
    return words.length === 0 ? 'Give it the indentation of a line above.' : `Begin it ${words.join(', or ')}.`;
  }

  /** Opens the elements that the line starts: for `- name: x` both the item and its key. */
  #enter(indent: number, content: string, isWrong: boolean): void {
    const opened: Level[] = [];
    let rest = content;
    let column = indent;
    for (let dash = /^-(?:\s+|$)/.exec(rest); dash !== null; dash = /^-(?:\s+|$)/.exec(rest)) {
      opened.push({ indent: column, kind: 'item', name: '', hasValue: rest !== dash[0], isWrong });
      column += dash[0].length;
      rest = rest.slice(dash[0].length);
    }
    const key = keyLine.exec(rest);
    if (key !== null) {
      const value = key[2] ?? '';
      const hasValue = value !== '' && !/^(?:#|[&!]\S+\s*$)/.test(value) && !openValue.test(value);
      opened.push({ indent: column, kind: 'key', name: (key[1] ?? '').replace(/^(["'])(.*)\1$/, '$2'), hasValue, isWrong });
    }
    const isList = opened[0]?.kind === 'item';
    this.#open = [
      ...this.#open.filter((level) => level.indent < indent || (isList && level.indent === indent && level.kind === 'key')),
      ...opened,
    ];
    const owner = opened.at(-1);
    if (owner !== undefined && blockHeader.test(key === null ? rest : (key[2] ?? ''))) this.#block = { owner, indent: undefined };
  }
}

function nameOf(level: Level): string {
  if (level.kind === 'item') return "the '-' above";
  return level.kind === 'text' ? `the text of ${quote(level.name)}` : quote(level.name);
}

function edgeOrSpaces(indent: number): string {
  return indent === 0 ? 'at the left edge' : `after ${spaces(indent)}`;
}

function spaces(count: number): string {
  return count === 1 ? '1 space' : `${count} spaces`;
}
