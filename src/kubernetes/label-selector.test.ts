import { expect, test } from 'vitest';
import { isSelected } from './label-selector.ts';

const labels = { app: 'chat', tier: 'web' };

test.each([
  [true, {}],
  [true, { matchLabels: { app: 'chat', tier: 'web' } }],
  [false, { matchLabels: { app: 'chat', tier: 'db' } }],
  [true, { matchExpressions: [{ key: 'app', operator: 'In', values: ['chat', 'mail'] }] }],
  [false, { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }],
  [true, { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }],
  [false, { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['chat'] }] }],
  [true, { matchExpressions: [{ key: 'app', operator: 'Exists' }] }],
  [false, { matchExpressions: [{ key: 'zone', operator: 'Exists' }] }],
  [false, { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }],
  [true, { matchExpressions: [{ key: 'app', operator: 'Later' }] }],
  [false, { matchLabels: { app: 'mail' }, matchExpressions: [{ key: 'app', operator: 'Exists' }] }],
])('the result is %s for %j', (isExpected, selector) => {
  expect(isSelected(selector, labels)).toBe(isExpected);
});
