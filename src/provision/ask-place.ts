import type { RefusalKind } from '../domain/placement.ts';
import type { Refused } from '../domain/placement/refusals.ts';
import { PlaceRefusal } from '../providers/place-refusal.ts';
import type { MachineId, MachineSpec, Offer, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import type { ErrorCode } from '../shared/error-codes.ts';

/** One place that is asked for one machine. */
export interface Ask {
  readonly provider: Provider;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly key: string;
}

/** What came of it. `unclear`: a refusal by a place that may have accepted all the same. `failed`: no other place would mend it. */
export type Answer =
  | { readonly type: 'given'; readonly machineId: MachineId }
  | { readonly type: 'refused'; readonly refused: Refused; readonly unclear: boolean }
  | { readonly type: 'failed'; readonly error: unknown };

/** A place may take so long to answer, ms; clouds that carry out a creation before they answer take a minute or two. */
const answerTimeoutMs = 180_000;

/** Passing faults are tried again so often at the same place before it counts as refused. */
const transientAttempts = 3;
const transientPauseMs = 500;

/** What errors without a scope of their own say. */
const kindOfCode: Partial<Record<ErrorCode, RefusalKind>> = {
  SVC_QUOTA: 'quota',
  SVC_PRICE: 'price',
  SVC_REFUSED_THERE: 'setup',
  SVC_UNSUPPORTED_THERE: 'unsupported',
};

const tooLong = (): Error => new SvcError('SVC_PLACE_FAILED', `no answer within ${answerTimeoutMs / 1_000} s`);

/** Asks for a machine, again after passing faults; never throws. Asking with the same key never gives a second one. */
export async function askPlace({ provider, offer, spec, key }: Ask, clock: Clock, signal: AbortSignal): Promise<Answer> {
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
      // All of the region answers with the same servers.
      const refused = { kind: 'capacity', scope: 'whole-region', reason: messageOf(error) } as const;
      if (isOver) return { type: 'refused', refused, unclear: true };
    }
    await clock.sleep(transientPauseMs * attempt, signal);
  }
}

/** What an error of a place says for good; undefined when it may pass by itself. */
export function refusalFrom(error: unknown): Extract<Answer, { readonly type: 'refused' | 'failed' }> | undefined {
  const reason = messageOf(error);
  const refuse = (kind: Refused['kind'], scope: Refused['scope']) => ({
    type: 'refused' as const,
    refused: { kind, scope, reason },
    unclear: false,
  });
  if (error instanceof PlaceRefusal) return refuse(error.refusal, error.scope);
  if (!(error instanceof SvcError)) return undefined;
  if (error.code === 'SVC_THROTTLED') return refuse('throttled', 'whole-region');
  if (error.kind === 'capacity') return refuse(kindOfCode[error.code] ?? 'capacity', 'zone');
  if (error.kind === 'unauthenticated') return refuse('permission', 'place');
  return error.kind === 'transient' || error.kind === 'internal' ? undefined : { type: 'failed', error };
}
