import { matchesGlob } from 'node:path';
import type { SvcError } from '../shared/errors.ts';
import { namesOf, notNamed } from '../shared/not-named.ts';

/** What names and patterns on a command line picked out. */
export interface Picked<Item> {
  /** In the order of the items, each once. */
  readonly found: readonly Item[];
  /** Names that nothing has. A pattern that matches nothing is not among them. */
  readonly missing: readonly string[];
}

/** The items that have one of the names or match one of the patterns (`*`, `?`, `[abc]`); all of them when no name is given. */
export function pickByName<Item extends { readonly name: string }>(items: readonly Item[], names: readonly string[]): Picked<Item> {
  if (names.length === 0) return { found: items, missing: [] };
  const found = items.filter((item) => names.some((name) => item.name === name || (isPattern(name) && matchesGlob(item.name, name))));
  const missing = names.filter((name) => !isPattern(name) && !items.some((item) => item.name === name));
  return { found, missing };
}

function isPattern(name: string): boolean {
  return /[*?[]/.test(name);
}

/** For a service that does not exist; `known` are those that do. */
export function serviceNotFound(name: string, known: readonly { readonly name: string }[] = []): SvcError {
  return notNamed('service', name, namesOf(known));
}

/** For a cluster that does not exist; `known` are those that do. */
export function clusterNotFound(name: string, known: readonly { readonly name: string }[] = []): SvcError {
  return notNamed('cluster', name, namesOf(known));
}
