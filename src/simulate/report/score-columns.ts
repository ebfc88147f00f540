import type { CombinedScore } from '../combined-simulation.ts';
import type { RequestScore } from '../request-simulation.ts';
import type { SpotScore } from '../spot-simulation.ts';

/** One column of a table of scores, for the terminal and the report. */
export interface ScoreColumn<Score> {
  readonly title: string;
  readonly value: (score: Score) => string;
  /** As in the tables of the command line: dropped when the terminal is narrow, lowest first. */
  readonly dropOrder?: number;
}

/** Columns for scores over requests; with money if the price of a replica is known. */
export function requestColumns(hourlyUsd: number | undefined): readonly ScoreColumn<RequestScore>[] {
  return withMoney(requestScores, hourlyUsd, ({ replicaHours }) => replicaHours);
}

/** The same over spot capacity. The price is that of a replica on demand. */
export function spotColumns(hourlyUsd: number | undefined): readonly ScoreColumn<SpotScore>[] {
  return withMoney(spotScores, hourlyUsd, ({ paidHours }) => paidHours);
}

/** The same over both together. */
export function combinedColumns(hourlyUsd: number | undefined): readonly ScoreColumn<CombinedScore>[] {
  return withMoney(combinedScores, hourlyUsd, ({ paidHours }) => paidHours);
}

/** Money is beside the relative cost. */
function withMoney<Score>(
  columns: readonly ScoreColumn<Score>[],
  hourlyUsd: number | undefined,
  hours: (score: Score) => number,
): readonly ScoreColumn<Score>[] {
  if (hourlyUsd === undefined) return columns;
  const usd = { title: 'USD', value: (score: Score) => (hours(score) * hourlyUsd).toFixed(2) };
  return [...columns.slice(0, 2), usd, ...columns.slice(2)];
}

const requestScores: readonly ScoreColumn<RequestScore>[] = [
  { title: 'POLICY', value: ({ policy }) => policy },
  { title: 'COST', value: ({ cost }) => cost.toFixed(3) },
  { title: 'AVAILABLE', value: ({ available }) => percent(available) },
  { title: 'FAILED', value: ({ failed }) => percent(failed) },
  { title: 'LATE', value: ({ late }) => percent(late) },
  { title: 'REPLICA-HOURS', value: ({ replicaHours }) => hoursText(replicaHours) },
  { title: 'CHANGES/H', value: ({ changesPerHour, kind }) => (kind === 'bound' ? '' : changesPerHour.toFixed(1)) },
  { title: 'MEAN_WAIT', value: ({ meanWaitSeconds }) => `${meanWaitSeconds.toFixed(2)}s`, dropOrder: 1 },
];

const spotScores: readonly ScoreColumn<SpotScore>[] = [
  { title: 'POLICY', value: ({ policy }) => policy },
  { title: 'COST', value: ({ cost }) => cost.toFixed(3) },
  { title: 'AVAILABLE', value: ({ available }) => percent(available) },
  { title: 'FAILED', value: ({ failed }) => percent(failed) },
  { title: 'SPOT-HOURS', value: ({ spotHours }) => hoursText(spotHours) },
  { title: 'ON-DEMAND-HOURS', value: ({ onDemandHours }) => hoursText(onDemandHours) },
  { title: 'CHANGES/H', value: ({ changesPerHour, kind }) => (kind === 'bound' ? '' : changesPerHour.toFixed(1)) },
  { title: 'LOST/DAY', value: ({ lostPerDay, kind }) => (kind === 'bound' ? '' : lostPerDay.toFixed(1)), dropOrder: 1 },
];

const combinedScores: readonly ScoreColumn<CombinedScore>[] = [
  { title: 'POLICY', value: ({ policy }) => policy },
  { title: 'COST', value: ({ cost }) => cost.toFixed(3) },
  { title: 'AVAILABLE', value: ({ available }) => percent(available) },
  { title: 'FAILED', value: ({ failed }) => percent(failed) },
  { title: 'CUT', value: ({ cut }) => percent(cut) },
  { title: 'LATE', value: ({ late }) => percent(late) },
  { title: 'REPLICA-HOURS', value: ({ replicaHours }) => hoursText(replicaHours) },
  { title: 'ON-DEMAND-HOURS', value: ({ onDemandHours }) => hoursText(onDemandHours) },
  { title: 'CHANGES/H', value: ({ changesPerHour, kind }) => (kind === 'bound' ? '' : changesPerHour.toFixed(1)), dropOrder: 2 },
  { title: 'LOST/DAY', value: ({ lostPerDay, kind }) => (kind === 'bound' ? '' : lostPerDay.toFixed(1)), dropOrder: 1 },
];

/** Short traces have few hours. */
function hoursText(hours: number): string {
  return hours.toFixed(hours < 10 ? 2 : 1);
}

/** Two decimals: what goals and comparisons are written in. */
function percent(share: number): string {
  return `${(share * 100).toFixed(2)}%`;
}
