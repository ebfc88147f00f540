import { placeName } from '../domain/place-name.ts';
import { kindOf, type PlacementFacts } from '../domain/placement.ts';
import { planPlaces, type JudgedCandidate } from '../domain/placement/plan.ts';
import { rememberRefusal, type Refused } from '../domain/placement/refusals.ts';
import type { MachineSpec, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { asSentence } from '../shared/sentence.ts';
import { refusalFrom } from './ask-place.ts';
import type { MachineCandidate } from './offers.ts';

/** How what is chosen is shown to its place. */
export interface RehearsalDeps {
  readonly providerOf: (candidate: MachineCandidate) => Provider | undefined;
  /** What would be asked for. */
  readonly spec: (candidate: MachineCandidate) => MachineSpec;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** A plan in which every place that can say so beforehand takes what is chosen for it. */
export interface RehearsedPlan {
  readonly judged: readonly JudgedCandidate<MachineCandidate>[];
  /** What places refuse and why, what to do about it, and which could not be asked. Sentences. */
  readonly notes: readonly string[];
}

/** A place that says nothing for so long, ms, says it when it is asked for the machine itself. */
const rehearsalMs = 8_000;

const late = (): Error => new SvcError('SVC_PLACE_FAILED', `no answer within ${rehearsalMs / 1_000} s`);

/** Chooses, shows what is chosen to its places, and chooses anew without what they refuse, until all that is chosen is taken. Each kind of machine is shown once. */
export async function rehearsePlan(
  candidates: readonly MachineCandidate[],
  replicas: number,
  facts: PlacementFacts,
  deps: RehearsalDeps,
): Promise<RehearsedPlan> {
  const shown = new Set<string>();
  const notes: string[] = [];
  let { refusals } = facts;
  for (;;) {
    const judged = planPlaces(candidates, replicas, { ...facts, refusals });
    const chosen = judged.flatMap(({ candidate, verdict }) => (verdict.type === 'chosen' ? [candidate] : []));
    const unshown = chosen.filter(({ offer }) => !shown.has(kindOf(offer)));
    if (unshown.length === 0) return { judged, notes };
    const answers = await Promise.all(unshown.map(async (candidate) => ({ candidate, answer: await show(candidate, deps) })));
    for (const { candidate, answer } of answers) {
      const { offer } = candidate;
      shown.add(kindOf(offer));
      if (answer === undefined) continue;
      notes.push(`${placeName(offer)}: ${answer.note}`);
      if (answer.refused !== undefined) refusals = rememberRefusal(refusals, offer, answer.refused, facts.now, 0);
    }
  }
}

interface PlaceAnswer {
  readonly note: string;
  /** Absent when the place could not be asked: then it may well take the machine. */
  readonly refused?: Refused;
}

async function show(candidate: MachineCandidate, { providerOf, spec, clock, signal }: RehearsalDeps): Promise<PlaceAnswer | undefined> {
  const provider = providerOf(candidate);
  if (provider?.rehearse === undefined) return undefined;
  const ask = async (inner: AbortSignal): Promise<void> => provider.rehearse?.(candidate.offer, spec(candidate), { signal: inner });
  try {
    await withDeadline(clock, rehearsalMs, ask, late, signal);
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
    const answer = refusalFrom(error);
    const said = asSentence(messageOf(error));
    if (answer?.type !== 'refused') return { note: `it is not known whether it takes this: ${said}` };
    return { note: error instanceof SvcError ? `${said} ${error.hint}` : said, refused: answer.refused };
  }
}
