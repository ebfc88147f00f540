import { kindOf, type PlaceableOffer, type StartTimes } from '../placement.ts';

/** The newest measurements of a kind that count: enough that one slow boot does not decide. */
const keptEach = 5;
const keptKinds = 200;

/** Under so many ms the differences are of no interest; beyond, a class spans a doubling. */
const finestMs = 15_000;

/** Remembers how long a machine took from being asked for until it ran, ms. */
export function rememberStart(starts: readonly StartTimes[], offer: PlaceableOffer, tookMs: number): readonly StartTimes[] {
  const kind = kindOf(offer);
  const took = [...(starts.find((one) => one.kind === kind)?.took ?? []), Math.round(tookMs)].slice(-keptEach);
  return [...starts.filter((one) => one.kind !== kind), { kind, took }].slice(-keptKinds);
}

/** The middle one of the measurements, the lower of two; undefined where there are none. */
export function medianOf(took: readonly number[]): number | undefined {
  return took.toSorted((a, b) => a - b)[Math.floor((took.length - 1) / 2)];
}

/**
 * How slow a start is, in coarse classes: 0 up to 15 s, 1 up to 30 s, 2 up to a minute and so on. Coarse, so that places that differ by
 * seconds still count as equal and replicas spread over them. What was never measured counts as fast, so that it is.
 */
export function startClass(medianMs: number | undefined): number {
  return medianMs === undefined || medianMs <= finestMs ? 0 : Math.ceil(Math.log2(medianMs / finestMs));
}
