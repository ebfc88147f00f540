import { expect, test } from 'vitest';
import { clusterNotFound, pickByName, serviceNotFound } from './name-patterns.ts';

const items = [{ name: 'chat' }, { name: 'test-1' }, { name: 'test-2' }];
const picked = (...names: readonly string[]) => {
  const { found, missing } = pickByName(items, names);
  return { found: found.map(({ name }) => name), missing };
};

test('without names, all items are selected', () => {
  expect(picked()).toEqual({ found: ['chat', 'test-1', 'test-2'], missing: [] });
});

test('names and patterns select each item once, in the order of the listing', () => {
  expect(picked('test-*', 'chat', 'test-1')).toEqual({ found: ['chat', 'test-1', 'test-2'], missing: [] });
  expect(picked('test-?')).toEqual({ found: ['test-1', 'test-2'], missing: [] });
  expect(picked('test-[2-9]')).toEqual({ found: ['test-2'], missing: [] });
});

test('an unknown name is missing; a pattern without a match is not', () => {
  expect(picked('chat', 'caht', 'prod-*')).toEqual({ found: ['chat'], missing: ['caht'] });
});

test('the error names the missing service or cluster', () => {
  expect(serviceNotFound('caht')).toMatchObject({ code: 'SVC_SERVICE_NOT_FOUND', message: "There is no service named 'caht'." });
  expect(clusterNotFound('dve')).toMatchObject({ code: 'SVC_CLUSTER_NOT_FOUND', message: "There is no cluster named 'dve'." });
});
