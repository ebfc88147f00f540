import { matchesGlob } from 'node:path';
import { SvcError } from '../shared/errors.ts';
import { namesOf, notNamed } from '../shared/did-you-mean.ts';
import { maxNameLength, nameProblem } from '../domain/names.ts';

interface Picked<Item> {
  /** In the order of the items, without duplicates. */
  readonly found: readonly Item[];
  /** Names without an item. Patterns without a match are not listed. */
  readonly missing: readonly string[];
}

/** The items with one of the names or patterns (`*`, `?`, `[abc]`); all items when no name is given. */
export function pickByName<Item extends { readonly name: string }>(items: readonly Item[], names: readonly string[]): Picked<Item> {
  if (names.length === 0) return { found: items, missing: [] };
  const found = items.filter((item) => names.some((name) => item.name === name || (isPattern(name) && matchesGlob(item.name, name))));
  const missing = names.filter((name) => !isPattern(name) && !items.some((item) => item.name === name));
  return { found, missing };
}

function isPattern(name: string): boolean {
  return /[*?[]/.test(name);
}

/** The error for a service that does not exist; `known` are the existing ones. */
export function serviceNotFound(name: string, known: readonly { readonly name: string }[] = []): SvcError {
  return notNamed('service', name, namesOf(known));
}

/** The error for a cluster that does not exist; `known` are the existing ones. */
export function clusterNotFound(name: string, known: readonly { readonly name: string }[] = []): SvcError {
  return notNamed('cluster', name, namesOf(known));
}

/** Throws SVC_BAD_NAME when the name is not valid for a service or cluster. */
export function checkName(name: string): void {
  const problem = nameProblem(name);
  if (problem === undefined) return;
  const hint = name.length > maxNameLength ? `Use at most ${maxNameLength} characters; this name has ${name.length}.` : undefined;
  throw new SvcError('SVC_BAD_NAME', problem, { hint });
}

/** The id of a replica or job as typed: a whole number from 1. */
export function parseId(word: string, what: 'replica' | 'job'): number {
  const id = /^\d{1,9}$/.test(word) ? Number(word) : 0;
  if (id >= 1) return id;
  throw new SvcError('SVC_USAGE', `'${word}' is not the id of a ${what}: ids are whole numbers from 1.`);
}
