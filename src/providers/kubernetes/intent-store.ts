import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { hasErrno } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/fingerprint.ts';
import { isObject } from '../../shared/is-object.ts';
import { readJsonFile } from '../../shared/parse-json.ts';
import type { HomePaths } from '../../shared/paths.ts';

/** An entry of the intent log: a namespace in which an owner may have resources. */
export interface NamespaceIntent {
  readonly context: string;
  readonly namespace: string;
  /** Tags that all its resources share; for a machine without an owner, all of its tags. */
  readonly tags: Readonly<Record<string, string>>;
}

/**
 * Intent log: the contexts and namespaces where this home created resources, and for which owner. One file each,
 * written before the create. An unreachable Kubernetes cluster then blocks only the owners that may have resources in
 * it. Recorded machine ids name contexts as well; in a new home they are the only source.
 */
export class IntentStore {
  readonly #dir: string;
  readonly #known = new Map<string, NamespaceIntent>();

  constructor(paths: HomePaths) {
    this.#dir = join(paths.home, 'kubernetes', 'notes');
  }

  list(): readonly NamespaceIntent[] {
    return [...this.#names().flatMap((name) => readIntent(join(this.#dir, name)) ?? []), ...this.#known.values()];
  }

  /** Writes each entry at most once. */
  put(intent: NamespaceIntent): void {
    const file = join(this.#dir, fileOf(intent));
    if (readIntent(file) !== undefined) return;
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    writeFileAtomic(file, JSON.stringify(intent));
  }

  /** Adds the namespace that a recorded machine id names, whichever home recorded it. */
  addKnown(context: string, namespace: string): void {
    this.#known.set(`${context}/${namespace}`, { context, namespace, tags: {} });
  }

  /** Succeeds when the entry is already gone. */
  remove(intent: NamespaceIntent): void {
    rmSync(join(this.#dir, fileOf(intent)), { force: true });
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#dir).filter((name) => name.endsWith('.json'));
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }
}

/** Whether an entry's machines can have all of the tags. */
export function mayHave(intent: NamespaceIntent, tags: Readonly<Record<string, string>>): boolean {
  return Object.entries(tags).every(([name, value]) => intent.tags[name] === undefined || intent.tags[name] === value);
}

function fileOf({ context, namespace, tags }: NamespaceIntent): string {
  const sorted = Object.entries(tags).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `${fingerprint(JSON.stringify([context, namespace, sorted]))}.json`;
}

function readIntent(file: string): NamespaceIntent | undefined {
  const intent = readJsonFile(file)?.value;
  if (!isObject(intent)) return undefined;
  const { context, namespace, tags } = intent;
  if (typeof context !== 'string' || typeof namespace !== 'string' || !isObject(tags)) return undefined;
  const texts = Object.entries(tags).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { context, namespace, tags: Object.fromEntries(texts) };
}
