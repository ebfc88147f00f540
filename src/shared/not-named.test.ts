import { expect, test } from 'vitest';
import { notNamed } from './not-named.ts';

test('an unknown name gets a suggestion or a list of the known names', () => {
  expect(notNamed('service', 'wbe', ['chat', 'web'])).toMatchObject({
    code: 'SVC_SERVICE_NOT_FOUND',
    message: "There is no service named 'wbe'.",
    hint: "Did you mean 'web'? Run: svc serve status",
  });
  expect(notNamed('cluster', 'dev', ['a', 'bb', 'ccc', 'dddddd', 'eeeeeee', 'ffffffff'])).toMatchObject({
    code: 'SVC_CLUSTER_NOT_FOUND',
    message: "There is no cluster named 'dev'.",
    hint: 'There are: a, bb, ccc, dddddd, eeeeeee, and more. Run: svc status',
  });
  expect(notNamed('cluster', 'dev', []).hint).toBe('Run: svc status');
});
