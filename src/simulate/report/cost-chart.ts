import { drawing, valueAxis, type Chart } from './chart.ts';
import { coordinate, escapeMarkup } from './markup.ts';
import { logarithmic, squareRoot, type Scale } from './scale.ts';

/** One policy in the chart. */
interface CostDot {
  readonly policy: string;
  readonly kind: 'own' | 'baseline' | 'bound';
  readonly cost: number;
  /** What a user wants to be small: late or failed requests, 0 to 1. */
  readonly share: number;
}

/** What the axes are. */
interface CostWords {
  readonly title: string;
  /** Such as `late`. */
  readonly share: string;
  /** What a cost of 1 is. */
  readonly whole: string;
}

/** Cost against late or failed requests. The numbers are those of the rows of the table. */
export function costChart(scores: readonly CostDot[], words: CostWords): Chart {
  const costs = scores.map(({ cost }) => cost);
  const [least, most] = [Math.min(...costs) / 1.05, Math.max(...costs) * 1.05];
  const x = logarithmic(least, most, drawing.left, drawing.right - 24);
  const costTicks = apart(
    costMarks.filter((cost) => cost >= least && cost <= most),
    x,
    leastCostDistance,
  );
  const mostBad = Math.max(0.01, ...scores.map(({ share }) => share));
  const shares = shareMarks.filter((_, index) => (shareMarks[index - 1] ?? 0) < mostBad);
  const y = squareRoot(shares.at(-1) ?? 1, drawing.bottom, drawing.top + 14);
  const shareTicks = apart(shares, y, leastShareDistance);
  const dots = scores.map((score) => {
    const title = `${score.policy}: cost ${score.cost.toFixed(3)}, ${words.share} ${percent(score.share)}`;
    return `<g><title>${escapeMarkup(title)}</title>${dot(score.kind, { x: x(score.cost), y: y(score.share) })}</g>`;
  });
  const labels = labelsOf(scores.map(({ cost, share }) => ({ x: x(cost), y: y(share) })));
  const ticks = costTicks.map(
    (cost) =>
      `<path class="grid" d="M${coordinate(x(cost))} ${drawing.bottom}v4"/><text class="mid" x="${coordinate(x(cost))}" y="${drawing.bottom + 18}">${cost}</text>`,
  );
  return {
    title: words.title,
    description: `Each policy as a dot: to the right is dearer, up is worse. ${scores.map(({ policy, cost, share }) => `${policy}: ${cost.toFixed(2)}, ${percent(share)}`).join('; ')}.`,
    body: [
      valueAxis(
        shareTicks.map((share) => share * 100),
        (value) => y(value / 100),
        `% ${words.share}`,
      ),
      ...ticks,
      ...dots,
      ...labels.map(({ text, ...at }) => `<text class="label" x="${coordinate(at.x + 8)}" y="${coordinate(at.y - 5)}">${text}</text>`),
    ].join(''),
    caption:
      `To the right: cost relative to ${words.whole}, on a logarithmic scale. Up: share of ${words.share} requests, on a square-root scale. ` +
      'The numbers are rows of the table. ' +
      '<span class="own">● svc</span> <span class="baseline">■ other tools</span> <span class="bound">◆ bound</span>',
  };
}

/** Distances in the drawing below which labels would touch. */
const leastShareDistance = 17;
const leastCostDistance = 34;

/** The marks that are far enough from the ones before them. 1 is kept before all others: the cost of the bound. */
function apart(marks: readonly number[], scale: Scale, distance: number): readonly number[] {
  const kept: number[] = [];
  for (const mark of marks.toSorted((a, b) => Number(b === 1) - Number(a === 1) || a - b))
    if (kept.every((other) => Math.abs(scale(other) - scale(mark)) > distance)) kept.push(mark);
  return kept;
}

/** Values on the axis of costs. */
const costMarks = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100];

/** Values on the axis of shares. */
const shareMarks = [0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1];

interface Label {
  readonly x: number;
  readonly y: number;
  /** The numbers of the dots there. */
  readonly text: string;
}

/** One label for dots that are too close for two. */
function labelsOf(dots: readonly { readonly x: number; readonly y: number }[]): readonly Label[] {
  const labels: Label[] = [];
  for (const [index, { x, y }] of dots.entries()) {
    const near = labels.findIndex((label) => Math.abs(label.x - x) < 20 && Math.abs(label.y - y) < 14);
    const there = labels[near];
    if (there === undefined) labels.push({ x, y, text: String(index + 1) });
    else labels[near] = { ...there, text: `${there.text}, ${index + 1}` };
  }
  return labels;
}

/** Shapes differ as well as colours. */
function dot(kind: CostDot['kind'], { x, y }: { readonly x: number; readonly y: number }): string {
  const [left, top] = [coordinate(x), coordinate(y)];
  if (kind === 'own') return `<circle class="dot-own" cx="${left}" cy="${top}" r="5"/>`;
  if (kind === 'baseline') return `<rect class="dot-baseline" x="${coordinate(x - 4.5)}" y="${coordinate(y - 4.5)}" width="9" height="9"/>`;
  return `<path class="dot-bound" d="M${left} ${coordinate(y - 6)}l6 6l-6 6l-6 -6z"/>`;
}

const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
