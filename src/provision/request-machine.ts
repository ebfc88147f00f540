import type { RefusalKind } from '../domain/placement.ts';
import type { Refused } from '../domain/placement/refusals.ts';
import { ProviderRefusal } from '../providers/provider-refusal.ts';
import type { MachineId, MachineSpec, Offer, Provider } from '../providers/provider.ts';
import { delayMs, type Backoff } from '../shared/backoff.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import type { ErrorCode } from '../shared/error-codes.ts';

interface Ask {
  readonly provider: Provider;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly key: string;
}

/** `unclear`: refused, but the provider may have created the machine. `failed`: no other provider can fix the error. */
export type Answer =
  | { readonly type: 'given'; readonly machineId: MachineId }
  | { readonly type: 'refused'; readonly refused: Refused; readonly unclear: boolean }
  | { readonly type: 'failed'; readonly error: unknown };

/** ms. Some clouds finish the creation before they answer, which takes a minute or two. */
const answerTimeoutMs = 180_000;

/** Attempts at a provider before transient errors count as its failure, which excludes it for a while. */
const transientAttempts = 3;
const transientBackoff: Backoff = { firstMs: 500, longestMs: 1_000 };

const kindOfCode: Partial<Record<ErrorCode, RefusalKind>> = {
  SVC_QUOTA: 'quota',
  SVC_PRICE: 'price',
  SVC_REFUSED_THERE: 'setup',
  SVC_UNSUPPORTED_THERE: 'unsupported',
};

const tooLong = (): Error => new SvcError('SVC_PLACE_FAILED', `no answer within ${answerTimeoutMs / 1_000} s`);

/** Retries transient errors; never throws. The same key never creates a second machine. */
export async function requestMachine({ provider, offer, spec, key }: Ask, clock: Clock, signal: AbortSignal): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    const askedAt = clock.monotonic();
    try {
      const create = (inner: AbortSignal): Promise<MachineId> => provider.create(offer, spec, key, { signal: inner });
      return { type: 'given', machineId: await withDeadline(clock, answerTimeoutMs, create, tooLong, signal) };
    } catch (error) {
      if (signal.aborted) return { type: 'failed', error };
      const answer = refusalFrom(error);
      if (answer !== undefined) return answer;
      const isOver = attempt >= transientAttempts || clock.monotonic() - askedAt >= answerTimeoutMs;
      // `whole-region`: the same API servers serve all zones of a region.
      const refused = { kind: 'provider-error', scope: 'whole-region', reason: messageOf(error) } as const;
      if (isOver) return { type: 'refused', refused, unclear: true };
    }
    await clock.sleep(delayMs(transientBackoff, attempt), signal);
  }
}

/** What a provider's error means permanently; undefined when it may be transient. */
export function refusalFrom(error: unknown): Extract<Answer, { readonly type: 'refused' | 'failed' }> | undefined {
  const reason = messageOf(error);
  const refuse = (kind: Refused['kind'], scope: Refused['scope']) => ({
    type: 'refused' as const,
    refused: { kind, scope, reason },
    unclear: false,
  });
  if (error instanceof ProviderRefusal) return refuse(error.refusal, error.scope);
  if (!(error instanceof SvcError)) return undefined;
  if (error.code === 'SVC_THROTTLED') return refuse('throttled', 'whole-region');
  if (error.kind === 'capacity') return refuse(kindOfCode[error.code] ?? 'capacity', 'zone');
  if (error.kind === 'unauthenticated') return refuse('permission', 'provider');
  return error.kind === 'transient' || error.kind === 'internal' ? undefined : { type: 'failed', error };
}
