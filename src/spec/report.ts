import type { ErrorCode } from '../shared/error-codes.ts';
import { SvcError, type Problem } from '../shared/errors.ts';
import { quote, redact } from '../shared/text.ts';
import type { SourceText } from './source-text.ts';
import type { Fault } from './yaml/fault.ts';
import { entryAt, nodeAt, type Path, type YamlNode } from './yaml/node.ts';

/** Limit of listed problems; a file with more of them is not a task file. */
const maxProblems = 100;

/** Collects the problems of one file. Converts paths and offsets to positions. */
export class Report {
  readonly #source: SourceText;
  readonly #root: YamlNode | undefined;
  readonly #secrets: () => Iterable<string>;
  readonly #found = new Map<string, Fault>();

  /** `secrets`: values that must not appear in any message. */
  constructor(source: SourceText, root: YamlNode | undefined, secrets: () => Iterable<string> = () => []) {
    this.#source = source;
    this.#root = root;
    this.#secrets = secrets;
  }

  get isEmpty(): boolean {
    return this.#found.size === 0;
  }

  /** Reports a problem with the value at a path. Without such a value, the nearest key above is shown. */
  at(path: Path, message: string, hint?: string): void {
    this.#add(this.#offset(path, false), prefixed(this.nameOf(path), message), hint);
  }

  /** Reports a problem with the last key of a path; the message names the path above it. */
  atKey(path: Path, message: string, hint?: string): void {
    this.#add(this.#offset(path, true), prefixed(this.nameOf(path.slice(0, -1)), message), hint);
  }

  fault(fault: Fault): void {
    this.#add(fault.at, fault.message, fault.hint);
  }

  /** A path as the file writes it: `resources.any_of[1].cpus`. Keys are shown before variables are substituted. */
  nameOf(path: Path): string {
    let name = '';
    for (const [index, step] of path.entries()) {
      if (typeof step === 'number') name += `[${step}]`;
      else name += `${name === '' ? '' : '.'}${this.#keyText(path.slice(0, index + 1))}`;
    }
    return name;
  }

  /** The file's own text at a path, for quoting in a message; never the value of a variable. */
  textAt(path: Path): string {
    const node = this.#root === undefined ? undefined : nodeAt(this.#root, path);
    return node?.kind === 'scalar' ? quote(node.text) : '';
  }

  /** Ordered by position. */
  problems(): readonly Problem[] {
    const secrets = [...this.#secrets()];
    const faults = [...this.#found.values()].toSorted((a, b) => a.at - b.at).slice(0, maxProblems);
    return faults.map(({ at, message, hint }) => ({
      message: redact(message, secrets),
      file: this.#source.file,
      ...this.#source.position(at),
      excerpt: redact(this.#source.excerpt(at), secrets),
      ...(hint === undefined ? {} : { hint: redact(hint, secrets) }),
    }));
  }

  toError(code: ErrorCode, what: string, details: { readonly hint?: string; readonly message?: string } = {}): SvcError {
    const problems = this.problems();
    const count = this.#found.size;
    const listed = count > problems.length ? ` The first ${problems.length} are listed.` : '';
    const message = details.message ?? `${what} ${this.#source.file} has ${count === 1 ? 'a problem' : `${count} problems`}.${listed}`;
    return new SvcError(code, message, { problems, hint: details.hint });
  }

  #add(at: number, message: string, hint: string | undefined): void {
    this.#found.set(`${at} ${message}`, { at, message, ...(hint === undefined ? {} : { hint }) });
  }

  #keyText(path: Path): string {
    const text = (this.#root === undefined ? undefined : entryAt(this.#root, path)?.keyText) ?? String(path.at(-1));
    return /^[\w./~$-]{1,60}$/.test(text) ? text : quote(text);
  }

  #offset(path: Path, key: boolean): number {
    if (this.#root === undefined) return 0;
    const entry = entryAt(this.#root, path);
    if (key && entry !== undefined) return entry.keyAt;
    const node = nodeAt(this.#root, path);
    // An empty value has no text to show: show its key.
    if (node?.kind === 'scalar' && node.value === null && node.text === '' && entry !== undefined) return entry.keyAt;
    if (node !== undefined) return node.at;
    return path.length === 0 ? 0 : this.#offset(path.slice(0, -1), true);
  }
}

function prefixed(name: string, message: string): string {
  return name === '' ? message : `${name}: ${message}`;
}
