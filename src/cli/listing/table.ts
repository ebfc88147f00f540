import { displayWidth, oneLine, padTo, truncate } from './display-text.ts';

/** One column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Minimum columns of its cells when the table is too wide. Never less than the title's width. */
  readonly shrinksTo?: number;
  /** Cut only after all optional columns have been dropped: its cells identify the rows. */
  readonly cutLast?: boolean;
  /** The column is dropped when cutting is not enough, lowest number first. */
  readonly dropOrder?: number;
  readonly paint?: (cell: string, row: Row) => string;
}

interface Fitted<Row> {
  readonly column: Column<Row>;
  readonly cells: readonly string[];
  width: number;
  readonly minWidth: number;
}

const gap = 2;

/**
 * Left-aligned columns two spaces apart, a title line, no trailing spaces. To fit `width`, optional columns are
 * dropped, then the widest are cut, and longer lines are truncated. Control characters in cells are removed.
 */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number): readonly string[] {
  const all = columns.map((column) => measure(column, rows));
  const fitted = shrink(drop(all, width), width);
  const titles = renderLine(fitted, width, ({ column }) => column.title);
  const lines = rows.map((row, index) =>
    renderLine(
      fitted,
      width,
      ({ cells }) => cells[index] ?? '',
      ({ column }, cell) => column.paint?.(cell, row) ?? cell,
    ),
  );
  return [titles, ...lines];
}

function measure<Row>(column: Column<Row>, rows: readonly Row[]): Fitted<Row> {
  const cells = rows.map((row) => oneLine(column.value(row)) || '-');
  const titleWidth = displayWidth(column.title);
  const width = Math.max(titleWidth, ...cells.map(displayWidth));
  return { column, cells, width, minWidth: Math.min(width, Math.max(titleWidth, column.shrinksTo ?? width)) };
}

function drop<Row>(columns: readonly Fitted<Row>[], width: number): readonly Fitted<Row>[] {
  const least = columns.reduce(
    (sum, { column, width: whole, minWidth }) => sum + (column.cutLast === true ? whole : minWidth),
    gap * (columns.length - 1),
  );
  if (least <= width) return columns;
  const orders = columns.flatMap(({ column }) => column.dropOrder ?? []);
  if (orders.length === 0) return columns;
  const first = Math.min(...orders);
  return drop(
    columns.filter(({ column }) => column.dropOrder !== first),
    width,
  );
}

/** Cuts the widest column, by one at a time, until the line fits. Columns with `cutLast` are cut last. */
function shrink<Row>(columns: readonly Fitted<Row>[], width: number): readonly Fitted<Row>[] {
  let excess = columns.reduce((sum, each) => sum + each.width, gap * (columns.length - 1)) - width;
  for (; excess > 0; excess -= 1) {
    const all = columns.filter((each) => each.width > each.minWidth);
    const first = all.filter(({ column }) => column.cutLast !== true);
    const givers = first.length > 0 ? first : all;
    const widest = givers.reduce<Fitted<Row> | undefined>(
      (best, each) => (best === undefined || each.width > best.width ? each : best),
      undefined,
    );
    if (widest === undefined) break;
    widest.width -= 1;
  }
  return columns;
}

function renderLine<Row>(
  columns: readonly Fitted<Row>[],
  width: number,
  textOf: (fitted: Fitted<Row>) => string,
  paint: (fitted: Fitted<Row>, cell: string) => string = (_, cell) => cell,
): string {
  let line = '';
  let used = 0;
  for (const fitted of columns) {
    const text = textOf(fitted);
    const room = Math.min(fitted.width, width - used);
    // A cell with only the cut mark left says nothing.
    if (room <= 1 && displayWidth(text) > room) break;
    const cell = truncate(text, room);
    line += paint(fitted, cell) + padTo('', room - displayWidth(cell) + gap);
    used += room + gap;
  }
  return line.trimEnd();
}
