import { SvcError } from '../shared/errors.ts';

/** The id of a replica or job as typed: a whole number from 1. */
export function parseId(word: string, what: 'replica' | 'job'): number {
  const id = /^\d{1,9}$/.test(word) ? Number(word) : 0;
  if (id >= 1) return id;
  throw new SvcError('SVC_USAGE', `'${word}' is not the id of a ${what}: ids are whole numbers from 1.`);
}
