import { messageOf, SvcError } from '../../src/shared/errors.ts';

/** Returns the error with which a promise rejects; fails when it resolves or rejects otherwise. */
export async function failureOf(promise: Promise<unknown>): Promise<SvcError> {
  const error: unknown = await promise.then(
    () => new Error('it did not fail'),
    (failure: unknown) => failure,
  );
  if (!(error instanceof SvcError)) throw new Error(`not an SvcError: ${messageOf(error)}`, { cause: error });
  return error;
}
