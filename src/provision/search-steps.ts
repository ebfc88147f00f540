import { locationName } from '../domain/location-name.ts';
import type { PlaceableOffer, RefusalKind } from '../domain/placement.ts';
import type { AskReason } from '../domain/placement/next-move.ts';
import { hourlyPrice } from '../domain/price.ts';
import type { Refused } from '../domain/placement/refusals.ts';
import type { MachineId, Offer } from '../providers/provider.ts';
import { isoTime } from '../shared/clock.ts';
import { asSentence } from '../shared/text.ts';

/** One recorded step of the search for a machine. */
export type SearchStep =
  /** The intent, recorded before the ask is sent. `of`: number of candidates. */
  | { readonly type: 'asking'; readonly offer: Offer; readonly why: AskReason; readonly of: number }
  /** svc does not ask for the offer again before `until`. */
  | { readonly type: 'refused'; readonly offer: Offer; readonly refused: Refused; readonly until: number }
  | { readonly type: 'given'; readonly offer: Offer; readonly machineId: MachineId }
  /** The provider's message about why an accepted machine does not run yet. */
  | { readonly type: 'booting'; readonly offer: PlaceableOffer; readonly machineId: MachineId; readonly message: string }
  /** The full text of that message, only for the log. */
  | { readonly type: 'detail'; readonly offer: PlaceableOffer; readonly machineId: MachineId; readonly detail: string }
  /** An accepted machine never ran. `refused`: why and until when its provider is not asked again. */
  | {
      readonly type: 'lost';
      readonly offer: PlaceableOffer;
      readonly machineId: MachineId;
      readonly reason: string;
      readonly refused?: { readonly kind: RefusalKind; readonly until: number };
    }
  /** Another location gave a machine first; svc terminated this one. */
  | { readonly type: 'surplus'; readonly offer: Offer; readonly machineId: MachineId }
  /** The price of the cheapest remaining offer, for all nodes, is above what the service's price limit leaves. */
  | { readonly type: 'too-dear'; readonly offer: Offer; readonly hourlyUsd: number; readonly mostUsd: number }
  | { readonly type: 'waiting'; readonly until: number; readonly reasons: readonly string[] };

/** Why an accepted machine never ran, and when its provider is asked again. */
export function whyLost({ reason, refused }: Extract<SearchStep, { type: 'lost' }>): string {
  return refused === undefined
    ? reason
    : `${asSentence(reason)} Cause: ${refused.kind}. No machine is asked for there before ${isoTime(refused.until)}.`;
}

const reasonTexts: Readonly<Record<AskReason, string>> = {
  best: 'the best of what may be asked',
  'better-busy': 'because better locations are being asked already',
  'slow-answer': 'as what was asked before is slow to answer',
};

const shownReasons = 4;

/** A sentence, for the history and the log. */
export function describeStep(step: SearchStep): string {
  switch (step.type) {
    case 'asking': {
      const { offer, why, of } = step;
      return `Asking ${locationName(offer)} for ${offer.instanceType} (${hourlyPrice(offer.hourlyUsd)}): ${of === 1 ? 'there is nothing else' : reasonTexts[why]}.`;
    }
    case 'refused': {
      const { kind, reason } = step.refused;
      const what = kind === 'provider-error' ? 'failed' : 'refused';
      return `${locationName(step.offer)} ${what} (${kind}): ${asSentence(reason)} Not asked again before ${isoTime(step.until)}.`;
    }
    case 'given':
      return `${locationName(step.offer)} created machine ${step.machineId}.`;
    case 'booting':
      return `${locationName(step.offer)}: ${step.message}`;
    case 'detail':
      return `${locationName(step.offer)} says of machine ${step.machineId}: ${step.detail}`;
    case 'lost':
      return `Machine ${step.machineId} is given up. ${whyLost(step)}`;
    case 'surplus':
      return `${locationName(step.offer)} created machine ${step.machineId} after another location had created one; it was terminated.`;
    case 'too-dear': {
      const { offer, hourlyUsd, mostUsd } = step;
      return `max_hourly_cost leaves ${hourlyPrice(mostUsd)} for this replica, and ${offer.instanceType} at ${locationName(offer)} costs ${hourlyPrice(hourlyUsd)}. It is asked for once the other replicas cost less.`;
    }
    case 'waiting': {
      const { reasons, until } = step;
      const more = reasons.length > shownReasons ? ` (and ${reasons.length - shownReasons} more)` : '';
      return `No location can be asked for a machine now; the next attempt is at ${isoTime(until)}. ${reasons.slice(0, shownReasons).join(' ')}${more}`;
    }
  }
}
