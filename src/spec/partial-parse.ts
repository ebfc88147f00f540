import type { z } from 'zod';
import type { Path } from './yaml/node.ts';

/** What came of validating a value. */
export interface PartialParse<Output> {
  /** What is left when everything that was refused is taken away; undefined when nothing is. */
  readonly output: Output | undefined;
  readonly issues: readonly z.core.$ZodIssue[];
}

/** A process reads one file or a few: writing a parser for each schema first takes longer than it saves (about 10 ms for a small file). */
const once = { jitless: true } as const;

/**
 * Validates, and where parts are refused goes on with the rest, so that rules over several fields can be checked on what is sound.
 * `retype` may offer another value for a part of the wrong type (a number for a variable's text); undefined leaves it.
 */
export function parsePartly<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  retype: (path: Path) => unknown = () => undefined,
): PartialParse<z.output<Schema>> {
  let rest = value;
  let result = schema.safeParse(rest, once);
  if (result.success) return { output: result.data, issues: [] };
  const retyped = new Edits();
  for (const { code, path } of result.error.issues) {
    if (code === 'invalid_type' || code === 'invalid_union') retyped.add(path, retype(path));
  }
  if (!retyped.isEmpty) {
    rest = retyped.apply(rest);
    result = schema.safeParse(rest, once);
    if (result.success) return { output: result.data, issues: [] };
  }
  const { issues } = result.error;
  // Each round takes something away, so it ends; a required field that is gone takes its parent with it.
  while (!result.success && rest !== undefined) {
    const cuts = new Edits();
    for (const issue of result.error.issues) for (const path of refusedPaths(issue)) cuts.add(path, gone);
    rest = cuts.apply(rest);
    result = schema.safeParse(rest, once);
  }
  return { output: result.success ? result.data : undefined, issues };
}

function refusedPaths(issue: z.core.$ZodIssue): readonly Path[] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
}

const gone = Symbol('gone');

/** Changes to make in a value, all in one pass, as a hostile file can have ten thousand of them. */
class Edits {
  #here: unknown;
  readonly #below = new Map<string, Edits>();

  get isEmpty(): boolean {
    return this.#here === undefined && this.#below.size === 0;
  }

  /** `gone` takes the value away, undefined changes nothing. */
  add(path: Path, value: unknown): void {
    if (value === undefined) return;
    const [key, ...rest] = path;
    if (key === undefined) {
      this.#here = value;
      return;
    }
    const next = this.#below.get(String(key)) ?? new Edits();
    this.#below.set(String(key), next);
    next.add(rest, value);
  }

  /** A changed copy. Cutting what is not there (a missing field), or an item of a list, takes the holder along. */
  apply(value: unknown): unknown {
    const result = this.#apply(value);
    return result === gone ? undefined : result;
  }

  #apply(value: unknown): unknown {
    if (this.#here !== undefined) return this.#here;
    if (Array.isArray(value)) {
      const items = value.map((item: unknown, index) => this.#child(String(index), item));
      return items.includes(gone) ? gone : items;
    }
    if (typeof value !== 'object' || value === null) return this.#below.size === 0 ? value : gone;
    for (const key of this.#below.keys()) if (!Object.hasOwn(value, key)) return gone;
    const entries = Object.entries(value).map(([key, item]: [string, unknown]) => [key, this.#child(key, item)] as const);
    return Object.fromEntries(entries.filter(([, item]) => item !== gone));
  }

  #child(key: string, item: unknown): unknown {
    const edits = this.#below.get(key);
    return edits === undefined ? item : edits.#apply(item);
  }
}
