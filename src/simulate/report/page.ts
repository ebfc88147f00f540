import { renderChart, type Chart } from './chart.ts';
import { escapeMarkup } from './markup.ts';
import { styleSheet } from './palette.ts';
import type { ScoreColumn } from './score-columns.ts';

/** A row of a table of scores. */
interface ScoreRow {
  readonly kind: 'own' | 'baseline' | 'bound';
  readonly summary: string;
}

/** One part of the report: a comparison over one trace. */
export interface ReportSection {
  readonly title: string;
  /** What was simulated: a sentence each. */
  readonly facts: readonly string[];
  /** As markup. */
  readonly table: string;
  readonly charts: readonly Chart[];
  /** What the columns of the table mean. */
  readonly legend: string;
  /** How to read the charts. */
  readonly caption: string;
}

/** The whole report as one HTML document that loads nothing. */
export function renderPage(title: string, sections: readonly ReportSection[]): string {
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${escapeMarkup(title)}</title>`,
    `<style>${styleSheet}</style>`,
    '</head>',
    '<body>',
    `<h1>${escapeMarkup(title)}</h1>`,
    ...sections.map(renderSection),
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function renderSection({ title, facts, table, charts, legend, caption }: ReportSection, section: number): string {
  return [
    `<section aria-labelledby="s${section}">`,
    `<h2 id="s${section}">${escapeMarkup(title)}</h2>`,
    ...facts.map((fact) => `<p>${escapeMarkup(fact)}</p>`),
    `<div class="wide" role="region" aria-label="Scores" tabindex="0">${table}</div>`,
    `<p class="quiet">${escapeMarkup(legend)}</p>`,
    `<p class="quiet">${escapeMarkup(caption)}</p>`,
    '<div class="charts">',
    ...charts.map((chart, index) => renderChart(chart, `s${section}c${index}`)),
    '</div>',
    '</section>',
  ].join('\n');
}

/** Scores as a table. Its first column has the numbers that charts refer to, its last one says what each policy is. */
export function renderScores<Score extends ScoreRow>(
  label: string,
  columns: readonly ScoreColumn<Score>[],
  scores: readonly Score[],
): string {
  const titles = columns.map(
    ({ title }, index) => `<th scope="col"${index === 0 ? ' class="text"' : ''}>${escapeMarkup(titleOf(title))}</th>`,
  );
  const rows = scores.map((score, row) => {
    const cells = columns.map(({ value }, index) =>
      index === 0
        ? `<th scope="row" class="text ${score.kind}">${escapeMarkup(value(score))}</th>`
        : `<td>${escapeMarkup(value(score)) || '–'}</td>`,
    );
    return `<tr><td class="text">${row + 1}</td>${cells.join('')}<td class="about">${escapeMarkup(score.summary)}</td></tr>`;
  });
  return [
    `<table aria-label="${escapeMarkup(label)}">`,
    `<thead><tr><th scope="col" class="text">#</th>${titles.join('')}<th scope="col" class="text">What it is</th></tr></thead>`,
    `<tbody>${rows.join('\n')}</tbody></table>`,
  ].join('\n');
}

/** Titles of a terminal's table in ordinary letters. */
function titleOf(title: string): string {
  return `${title.charAt(0)}${title.slice(1).toLowerCase().replaceAll('_', ' ')}`;
}
