import { expect, test } from 'vitest';
import { asSentence } from './text.ts';

test('a text without a final full stop gets one', () => {
  expect(['no room', 'No room. ', 'Why?', 'No!'].map(asSentence)).toEqual(['no room.', 'No room.', 'Why?', 'No!']);
});
