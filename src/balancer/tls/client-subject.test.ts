import { expect, test } from 'vitest';
import { subjectText } from './client-subject.ts';

test.each([
  ['O=Example\nCN=alice', 'O=Example,CN=alice'],
  ['CN=a\\, b\\0AX-Evil: 1 + O=Ex', 'CN=a\\, b\\0AX-Evil: 1 + O=Ex'],
  ['CN=100% é\r\u{1F600}', 'CN=100%25 %C3%A9%0D%F0%9F%98%80'],
  ['', ''],
])('the subject %j is passed on as %j', (lines, text) => {
  expect(subjectText(lines)).toBe(text);
});
