import { expect, test } from 'vitest';
import { headOf } from '../../../test/support/http1-events.ts';
import type { SessionKey } from '../../domain/task.ts';
import { pinnedVersion, sessionOf } from './affinity.ts';

const fieldsWith = (...lines: readonly string[]) => headOf(`GET / HTTP/1.1\r\n${['Host: a', ...lines, '', ''].join('\r\n')}`).fields;

test.for<readonly [readonly string[], number | undefined]>([
  [['x-svc-version: 3'], 3],
  [['X-SVC-Version:  12 '], 12],
  [['x-svc-version: 0'], undefined],
  [['x-svc-version: v3'], undefined],
  [['x-svc-version: 3', 'x-svc-version: 4'], undefined],
  [['x-svc-versions: 3'], undefined],
  [[], undefined],
])('%j pins a request to %s', ([lines, version]) => {
  expect(pinnedVersion(fieldsWith(...lines))).toBe(version);
});

test.for<readonly [readonly string[], SessionKey, string | undefined]>([
  [['Session_Id: abc'], { header: 'session_ID' }, 'abc'],
  [['Session_Id:'], { header: 'session_id' }, undefined],
  [['Session: abc'], { header: 'session_id' }, undefined],
  [['Cookie: a=1; sid=x=y; b=2'], { cookie: 'sid' }, 'x=y'],
  [['Cookie: a=1;sid=z'], { cookie: 'sid' }, 'z'],
  [['Cookie: a=1', 'cookie: sid=2'], { cookie: 'sid' }, '2'],
  [['Cookie: asid=1; sid2=2; SID=3'], { cookie: 'sid' }, undefined],
  [['Cookie: sid=; a=1'], { cookie: 'sid' }, undefined],
  [['Cookie: ; ;sid'], { cookie: 'sid' }, undefined],
])('%j with key %j names the session %s', ([lines, key, session]) => {
  expect(sessionOf(fieldsWith(...lines), key)).toBe(session);
});
