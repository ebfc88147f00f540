import { expect, test } from 'vitest';
import { recordFailedTry, openRecord, withoutQuery } from './access-record.ts';

test('withoutQuery removes the query, which may hold secrets', () => {
  expect([withoutQuery('/a?key=s'), withoutQuery('/a'), withoutQuery('/?')]).toEqual(['/a', '/a', '/']);
});

test('a record keeps the first failed attempts and only counts later ones', () => {
  const record = openRecord(0, 0);
  recordFailedTry(record, 'unreached');
  expect(record.failed).toEqual([]);
  for (let id = 1; id <= 9; id += 1) {
    record.replica = { id, slot: id, location: 'local' };
    recordFailedTry(record, 'unreached');
  }
  expect(record.failed.map(({ replicaId }) => replicaId)).toEqual([1, 2, 3, 4, 5]);
  expect(openRecord(0, 0).failed).toEqual([]);
});
