import fc from 'fast-check';
import { expect, test } from 'vitest';
import { displayWidth } from './display-text.ts';
import { renderTable, type Column } from './table.ts';

interface Row {
  readonly name: string;
  readonly endpoint: string;
  readonly status: string;
}

const columns: readonly Column<Row>[] = [
  { title: 'NAME', value: ({ name }) => name, shrinksTo: 4 },
  { title: 'ENDPOINT', value: ({ endpoint }) => endpoint, shrinksTo: 4, dropOrder: 1 },
  { title: 'STATUS', value: ({ status }) => status },
];
const row: Row = { name: 'a-rather-long-name', endpoint: 'http://127.0.0.1:30001', status: 'READY' };

test('columns are two spaces apart and lines have no trailing spaces', () => {
  expect(renderTable(columns, [row, { ...row, name: 'b', status: 'STARTING' }], 200)).toEqual([
    'NAME                ENDPOINT                STATUS',
    'a-rather-long-name  http://127.0.0.1:30001  READY',
    'b                   http://127.0.0.1:30001  STARTING',
  ]);
});

test('a table that is too wide cuts its widest columns', () => {
  expect(renderTable(columns, [row], 40)).toEqual(['NAME             ENDPOINT         STATUS', 'a-rather-long-…  http://127.0.0…  READY']);
});

test('when cutting is not enough, columns are dropped, then lines are truncated', () => {
  expect(renderTable(columns, [row], 20)).toEqual(['NAME          STATUS', 'a-rather-lo…  READY']);
  expect(renderTable(columns, [row], 8)).toEqual(['NAME  S…', 'a-r…  R…']);
  expect(renderTable(columns, [row], 5)).toEqual(['NAME', 'a-r…']);
});

test('an empty cell is a dash; control characters are removed', () => {
  expect(renderTable(columns, [{ name: '', endpoint: 'a\nb', status: '\u001B[31mREADY' }], 80)[1]).toBe('-     a b       READY');
});

test('colour is added to the finished cell and takes no columns', () => {
  const painted = columns.map((column) => ({ ...column, paint: (cell: string) => `<${cell}>` }));
  expect(renderTable(painted, [{ name: 'chat', endpoint: 'here', status: 'READY' }], 80)[1]).toBe('<chat>  <here>      <READY>');
});

test('no line is wider than the terminal', () => {
  const cell = fc.string({ unit: 'grapheme', maxLength: 30 });
  const rows = fc.array(fc.record({ name: cell, endpoint: cell, status: cell }), { maxLength: 5 });
  const property = fc.property(rows, fc.integer({ min: 1, max: 100 }), (given, width) =>
    renderTable(columns, given, width).every((line) => displayWidth(line) <= width),
  );
  fc.assert(property);
});
