import { combinedLegend, requestLegend, spotLegend, type Findings } from '../../simulate/report/report.ts';
import { combinedColumns, requestColumns, spotColumns, type ScoreColumn } from '../../simulate/report/score-columns.ts';
import { wrapText } from '../command-text.ts';
import type { Ui } from '../ui.ts';
import { renderTable } from './table.ts';

/** The findings of a simulation for people. */
export function renderFindings({ requests, spot, both }: Findings, ui: Pick<Ui, 'paint' | 'outWidth'>): readonly string[] {
  const sections = [
    ...(requests === undefined
      ? []
      : [section(requests.facts, requestColumns(requests.hourlyUsd), requests.answer.scores, requestLegend, ui)]),
    ...spot.map(({ facts, hourlyUsd, answer }) => section(facts, spotColumns(hourlyUsd), answer.scores, spotLegend, ui)),
    ...both.map(({ facts, hourlyUsd, answer }) => section(facts, combinedColumns(hourlyUsd), answer.scores, combinedLegend, ui)),
  ];
  return sections.flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}

function section<Score>(
  facts: readonly string[],
  columns: readonly ScoreColumn<Score>[],
  scores: readonly Score[],
  legend: string,
  { paint, outWidth }: Pick<Ui, 'paint' | 'outWidth'>,
): readonly string[] {
  return [
    ...facts.map((fact) => wrapText(fact, outWidth)),
    '',
    ...renderTable(columns, scores, outWidth),
    '',
    paint('quiet', wrapText(legend, outWidth)),
  ];
}
