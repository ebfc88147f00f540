import { expect, test } from 'vitest';
import { noteFailedTry, openRecord, withoutQuery } from './access-record.ts';

test('the query, where secrets are, is left out', () => {
  expect([withoutQuery('/a?key=s'), withoutQuery('/a'), withoutQuery('/?')]).toEqual(['/a', '/a', '/']);
});

test('the first attempts that came to nothing are remembered, the others counted only', () => {
  const record = openRecord(0, 0);
  noteFailedTry(record, 'unreached');
  expect(record.failed).toEqual([]);
  for (let id = 1; id <= 9; id += 1) {
    record.replica = { id, slot: id, place: 'local' };
    noteFailedTry(record, 'unreached');
  }
  expect(record.failed.map(({ replicaId }) => replicaId)).toEqual([1, 2, 3, 4, 5]);
  expect(openRecord(0, 0).failed).toEqual([]);
});
