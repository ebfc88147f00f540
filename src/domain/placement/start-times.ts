import { kindOf, type PlaceableOffer, type StartTimes } from '../placement.ts';

/** Number of measurements per kind that count: enough that one slow boot does not decide. */
const keptEach = 5;
const keptKinds = 200;

/** Differences below this do not matter, ms. Above it, each class spans a doubling. */
const finestMs = 15_000;

/** Records how long a machine took from the request until it ran, ms. */
export function rememberStart(starts: readonly StartTimes[], offer: PlaceableOffer, tookMs: number): readonly StartTimes[] {
  const kind = kindOf(offer);
  const took = [...(starts.find((one) => one.kind === kind)?.took ?? []), Math.round(tookMs)].slice(-keptEach);
  return [...starts.filter((one) => one.kind !== kind), { kind, took }].slice(-keptKinds);
}

/** The median of the measurements, the lower of two; undefined without measurements. */
export function medianOf(took: readonly number[]): number | undefined {
  return took.toSorted((a, b) => a - b)[Math.floor((took.length - 1) / 2)];
}

/**
 * Class of a start time: 0 up to 15 s, 1 up to 30 s, 2 up to a minute and so on.
 * The classes are coarse: locations that differ by seconds count as equal, and replicas spread over them. An unmeasured
 * kind counts as fast, so that it gets measured.
 */
export function startClass(medianMs: number | undefined): number {
  return medianMs === undefined || medianMs <= finestMs ? 0 : Math.ceil(Math.log2(medianMs / finestMs));
}
