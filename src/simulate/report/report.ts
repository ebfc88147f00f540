import { combinedSeconds, type CombinedAnswer, type CombinedQuestion } from '../combined-simulation.ts';
import type { RequestAnswer, RequestQuestion } from '../request-simulation.ts';
import type { SpotAnswer, SpotQuestion } from '../spot-simulation.ts';
import { renderPage, renderScores, type ReportSection } from './page.ts';
import { costChart } from './cost-chart.ts';
import { replicaCharts, requestChart } from './request-charts.ts';
import { combinedColumns, requestColumns, spotColumns } from './score-columns.ts';
import { spotCharts, zoneChart } from './spot-charts.ts';

/** A finished comparison with the sentences that introduce it. */
export interface Finished<Question, Answer> {
  readonly name: string;
  readonly facts: readonly string[];
  /** Price of a replica on demand, if it is known. */
  readonly hourlyUsd: number | undefined;
  readonly question: Question;
  readonly answer: Answer;
}

/** Everything that one run of `svc simulate` found. */
export interface Findings {
  readonly service: string;
  readonly requests: Finished<RequestQuestion, RequestAnswer> | undefined;
  readonly spot: readonly Finished<SpotQuestion, SpotAnswer>[];
  /** Requests and spot capacity together. */
  readonly both: readonly Finished<CombinedQuestion, CombinedAnswer>[];
}

/** What the columns of a comparison over requests mean. */
export const requestLegend =
  'COST: replica-hours relative to the bound, which knows the future. AVAILABLE: share of the time in which a request waits at most 5 s. LATE: requests that wait longer. FAILED: requests beyond a queue of 60 s. The first 10 minutes are not scored.';

/** The same for spot capacity. */
export const spotLegend =
  'COST: money relative to all replicas on demand. AVAILABLE: share of the time with enough ready replicas. FAILED: requests that exceed their capacity, or run on a replica when it is lost. Means of 3 runs.';

/** The same for both together. */
export const combinedLegend =
  'COST: money relative to the fewest replicas that make no request late, all on demand. AVAILABLE: share of the time in which a request waits at most 5 s. LATE: requests that wait longer. FAILED: requests beyond a queue of 60 s, and CUT: those that ran on a replica when it was lost. The first 10 minutes are not scored. Means of 3 runs.';

/** The report of `svc simulate` as one HTML document that loads nothing. */
export function renderReport({ service, requests, spot, both }: Findings): string {
  const sections: ReportSection[] = [];
  if (requests !== undefined) {
    const { question, answer, name, facts, hourlyUsd } = requests;
    sections.push({
      title: `Requests: ${name}`,
      facts,
      table: renderScores('Policies over requests', requestColumns(hourlyUsd), answer.scores),
      charts: [
        costChart(
          answer.scores.map(({ late, ...score }) => ({ ...score, share: late })),
          { title: 'Cost and late requests', share: 'late', whole: 'the bound' },
        ),
        requestChart(question.trace),
        ...replicaCharts(answer, question.trace),
      ],
      legend: requestLegend,
      caption:
        'Replicas over time: the line is what the policy launched, the area what the requests keep busy. Red marks at the bottom: requests are late.',
    });
  }
  for (const { question, answer, name, facts, hourlyUsd } of spot) {
    sections.push({
      title: `Spot: ${name}`,
      facts,
      table: renderScores('Policies over spot capacity', spotColumns(hourlyUsd), answer.scores),
      charts: [
        costChart(
          answer.scores.map(({ failed, ...score }) => ({ ...score, share: failed })),
          { title: 'Cost and failed requests', share: 'failed', whole: 'all replicas on demand' },
        ),
        zoneChart(question.trace),
        ...spotCharts(answer, question.target),
      ],
      legend: spotLegend,
      caption:
        'Replicas over time: the line is what is ready, the area what runs on demand, the dashed line the target. Red marks at the bottom: fewer are ready.',
    });
  }
  for (const { question, answer, name, facts, hourlyUsd } of both) {
    const { trace } = question.spot;
    const requestsOfRun = { ...question.requests.trace, arrivals: question.requests.trace.arrivals.slice(0, combinedSeconds(question)) };
    sections.push({
      title: `Requests and spot: ${name}, ${trace.name}`,
      facts,
      table: renderScores('Policies over requests and spot capacity', combinedColumns(hourlyUsd), answer.scores),
      charts: [
        costChart(
          answer.scores.map(({ late, ...score }) => ({ ...score, share: late })),
          { title: 'Cost and late requests', share: 'late', whole: 'the bound on demand' },
        ),
        requestChart(requestsOfRun),
        zoneChart(trace),
        ...replicaCharts(answer, requestsOfRun),
      ],
      legend: combinedLegend,
      caption:
        'Replicas over time in the first run: the line is what is launched, the dashed line what runs on demand, the area what the requests keep busy. Red marks at the bottom: requests are late.',
    });
  }
  return renderPage(`Simulation of ${service}`, sections);
}
