import type { z } from 'zod';
import type { Path } from './yaml/node.ts';

interface PartialParse<Output> {
  /** The value without the refused parts; undefined when nothing is left. */
  readonly output: Output | undefined;
  readonly issues: readonly z.core.$ZodIssue[];
}

/** For one file or a few, compiling parsers takes longer than it saves (about 10 ms for a small file). */
const once = { jitless: true } as const;

/**
 * Validates. Continues without the invalid parts: rules over several fields are checked on the valid ones. `retype` may
 * replace a part of the wrong type (a number for a variable's text); undefined leaves it.
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
  // Each round removes something, so the loop ends. A missing required field removes its parent.
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

/** Edits to a value, applied in one pass: a hostile file can need ten thousand of them. */
class Edits {
  #value: unknown;
  readonly #below = new Map<string, Edits>();

  get isEmpty(): boolean {
    return this.#value === undefined && this.#below.size === 0;
  }

  /** `gone` removes the value, undefined changes nothing. */
  add(path: Path, value: unknown): void {
    if (value === undefined) return;
    const [key, ...rest] = path;
    if (key === undefined) {
      this.#value = value;
      return;
    }
    const next = this.#below.get(String(key)) ?? new Edits();
    this.#below.set(String(key), next);
    next.add(rest, value);
  }

  /** Returns an edited copy. Removing a missing field or a list item removes its holder too. */
  apply(value: unknown): unknown {
    const result = this.#apply(value);
    return result === gone ? undefined : result;
  }

  #apply(value: unknown): unknown {
    if (this.#value !== undefined) return this.#value;
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
