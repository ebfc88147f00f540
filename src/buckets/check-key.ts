import { SvcError } from '../shared/errors.ts';

/** Throws SVC_INTERNAL for a key that not every kind of store could hold, or that would lead out of a folder. */
export function checkKey(key: string): void {
  const isSound = key !== '' && key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isSound || key.includes('\0')) throw new SvcError('SVC_INTERNAL', `'${key}' cannot be the key of an object.`);
}
