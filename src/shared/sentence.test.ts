import { expect, test } from 'vitest';
import { asSentence } from './sentence.ts';

test('what ends without a full stop gets one, once', () => {
  expect(['no room', 'No room. ', 'Why?', 'No!'].map(asSentence)).toEqual(['no room.', 'No room.', 'Why?', 'No!']);
});
