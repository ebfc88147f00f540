import { expect, test } from 'vitest';
import { aTask } from '../../../test/support/builders.ts';
import { redactor } from './replica-program.ts';

test('each line of a multi-line key is hidden', () => {
  const hide = redactor(aTask({ secrets: { KEY: '-----BEGIN\nMIIEvQIBADANBg\n-----END' } }));
  expect(hide('loaded MIIEvQIBADANBg')).toBe('loaded ***');
});

test('secrets, and envs with secret-like names, are hidden in any text', () => {
  const hide = redactor(aTask({ secrets: { A: 'hunter22' }, envs: { AUTH_TOKEN: 'abcdef', MODEL: 'llama-3' } }));
  expect(hide('started llama-3 with hunter22 and Bearer abcdef')).toBe('started llama-3 with *** and Bearer ***');
});
