import { SvcError } from '../shared/errors.ts';

/** Throws SVC_INTERNAL for a key that some kind of store cannot hold, or that points outside the bucket's folder. */
export function checkKey(key: string): void {
  const isSound = key !== '' && key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isSound || key.includes('\0')) throw new SvcError('SVC_INTERNAL', `'${key}' cannot be the key of an object.`);
}
