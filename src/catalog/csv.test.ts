import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CsvColumns, parseCsvLine, readAmount } from './csv.ts';

test('quoted fields keep commas, and doubled quotes become one', () => {
  expect(parseCsvLine('a,"b, c",,"say ""hi"""')).toEqual(['a', 'b, c', '', 'say "hi"']);
  expect(parseCsvLine('')).toEqual(['']);
  expect(parseCsvLine('a,')).toEqual(['a', '']);
  expect(parseCsvLine('"a",')).toEqual(['a', '']);
});

test('quoted text is parsed to the original', () => {
  const field = fc.string().filter((text) => !/[\r\n]/.test(text));
  fc.assert(
    fc.property(fc.array(field, { minLength: 1, maxLength: 6 }), (fields) => {
      expect(parseCsvLine(fields.map((one) => `"${one.replaceAll('"', '""')}"`).join(','))).toEqual(fields);
    }),
  );
});

test('fields are found by the names in the header', () => {
  const columns = new CsvColumns('\uFEFFPrice, Region ,Type');
  const row = parseCsvLine('1.5, east ,t');
  expect([columns.amount(row, 'Price'), columns.field(row, 'Region'), columns.field(row, 'Spot')]).toEqual([1.5, 'east', '']);
  expect(columns.missing(['Type', 'Spot'])).toEqual(['Spot']);
});

test('only plain numbers of at least 0 are amounts', () => {
  expect(['1', '0.5', '1e-3', '-1', '', 'x', 'NaN', 'Infinity', '0x1'].map(readAmount)).toEqual([
    1,
    0.5,
    0.001,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
