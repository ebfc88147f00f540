import { placeName } from '../domain/place-name.ts';
import type { PlaceableOffer } from '../domain/placement.ts';
import type { AskReason } from '../domain/placement/next-move.ts';
import { hourlyPrice } from '../domain/price.ts';
import type { Refused } from '../domain/placement/refusals.ts';
import type { MachineId, Offer } from '../providers/provider.ts';
import { isoTime } from '../shared/clock.ts';
import { asSentence } from '../shared/sentence.ts';

/** One step of the search for a machine, as it is recorded. */
export type SearchStep =
  /** Recorded before the place is asked: the intent. */
  | { readonly type: 'asking'; readonly offer: Offer; readonly why: AskReason; readonly of: number }
  | { readonly type: 'refused'; readonly offer: Offer; readonly refused: Refused; readonly until: number }
  | { readonly type: 'given'; readonly offer: Offer; readonly machineId: MachineId }
  /** What keeps a machine that was given from running yet, as its place says it. */
  | { readonly type: 'booting'; readonly offer: PlaceableOffer; readonly machineId: MachineId; readonly message: string }
  /** The same at its full length: for the log, and for nothing else. */
  | { readonly type: 'detail'; readonly offer: PlaceableOffer; readonly machineId: MachineId; readonly detail: string }
  /** A machine that was given never came up, or went away before it had. */
  | { readonly type: 'lost'; readonly offer: PlaceableOffer; readonly machineId: MachineId; readonly reason: string }
  /** Another place was faster; this one's machine was given back. */
  | { readonly type: 'surplus'; readonly offer: Offer; readonly machineId: MachineId }
  | { readonly type: 'waiting'; readonly until: number; readonly reasons: readonly string[] };

const reasonTexts: Readonly<Record<AskReason, string>> = {
  best: 'the best of what may be asked',
  'better-busy': 'as better places are being asked already',
  'slow-answer': 'as what was asked before is slow to answer',
};

/** More reasons of a wait are not spelled out. */
const shownReasons = 4;

/** A step as a sentence for the history and the log. */
export function describeStep(step: SearchStep): string {
  switch (step.type) {
    case 'asking': {
      const { offer, why, of } = step;
      return `Asking ${placeName(offer)} for ${offer.instanceType} (${hourlyPrice(offer.hourlyUsd)}): ${of === 1 ? 'there is nothing else' : reasonTexts[why]}.`;
    }
    case 'refused':
      return `${placeName(step.offer)} refused (${step.refused.kind}): ${asSentence(step.refused.reason)} Not asked again before ${isoTime(step.until)}.`;
    case 'given':
      return `${placeName(step.offer)} gave machine ${step.machineId}.`;
    case 'booting':
      return `${placeName(step.offer)}: ${step.message}`;
    case 'detail':
      return `${placeName(step.offer)} says of machine ${step.machineId}: ${step.detail}`;
    case 'lost':
      return `Machine ${step.machineId} is given up. ${step.reason}`;
    case 'surplus':
      return `${placeName(step.offer)} gave machine ${step.machineId} after another place had given one; it was given back.`;
    case 'waiting': {
      const { reasons, until } = step;
      const more = reasons.length > shownReasons ? ` (and ${reasons.length - shownReasons} more)` : '';
      return `No place gives a machine now; asking again at ${isoTime(until)}. ${reasons.slice(0, shownReasons).join(' ')}${more}`;
    }
  }
}
