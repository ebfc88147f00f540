import { SvcError } from '../../shared/errors.ts';

/**
 * Does something in each region where a controller that was lost may have launched something, which nobody knows any more: in all. Where these
 * credentials may not even look, it could launch nothing with them. Throws when that is so everywhere, as then it is the credentials that are no good,
 * and the first other failure.
 */
export async function inEveryRegion<T>(regions: readonly string[], work: (region: string) => Promise<T>): Promise<readonly T[]> {
  const results = await Promise.allSettled(regions.map(work));
  const failures = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));
  const [worst] = failures.length === results.length ? failures : failures.filter((error) => !isClosed(error));
  if (worst !== undefined) throw worst;
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

/** What AWS says of a region that the account has not enabled, or that its organisation denies. */
function isClosed(error: unknown): boolean {
  return error instanceof SvcError && (error.code === 'SVC_DENIED' || error.code === 'SVC_CREDENTIALS');
}
