import { expect, test } from 'vitest';
import { actText, isDistrusted, kubeStatusOf, readStatus, statusError, unansweredError } from './kube-errors.ts';

test.each([
  ['/api/v1/nodes', 'get nodes'],
  ['/api/v1/nodes/n1', 'get nodes n1'],
  ['/api/v1/namespaces/team', 'get namespaces team'],
  ['/api/v1/namespaces/team/pods', 'get pods in namespace team'],
  ['/api/v1/namespaces/team/pods/web?x=/y', 'get pods web in namespace team'],
  ['/api/v1/namespaces/team/pods/web/exec?command=a', 'get pods/exec web in namespace team'],
  ['/apis/apps/v1/namespaces/team/deployments/d%20e', 'get deployments d e in namespace team'],
  ['/apis/coordination.k8s.io/v1/leases', 'get leases'],
  ['/version', 'get /version'],
  ['/apis', 'get /apis'],
  ['/api/v1/nodes/%E0%A4%A', 'get nodes %E0%A4%A'],
])('%s is described as "%s"', (path, expected) => {
  expect(actText({ verb: 'get', path, context: 'c' })).toBe(expected);
});

const act = { verb: 'create', path: '/api/v1/namespaces/team/pods', context: 'prod' };

test('field causes in a status stay available to callers', () => {
  const body = {
    kind: 'Status',
    code: 422,
    reason: 'Invalid',
    message: 'Pod "x" is invalid',
    details: { causes: [{ reason: 'FieldValueInvalid', field: 'spec.x', message: 'bad' }, 'odd'] },
  };
  const error = statusError(act, readStatus(422, JSON.stringify(body)));
  expect(error).toMatchObject({
    code: 'SVC_KUBERNETES',
    message: 'The cluster prod did not create pods in namespace team: Pod "x" is invalid',
  });
  expect(kubeStatusOf(error)?.causes).toEqual([{ reason: 'FieldValueInvalid', field: 'spec.x', message: 'bad' }]);
  expect(kubeStatusOf(new Error('another'))).toBeUndefined();
  expect(kubeStatusOf('odd')).toBeUndefined();
});

test.each([
  [401, 'SVC_CREDENTIALS', 'unauthenticated'],
  [403, 'SVC_DENIED', 'unauthenticated'],
  [409, 'SVC_KUBERNETES', 'transient'],
  [500, 'SVC_KUBERNETES', 'transient'],
])('status %i becomes %s', (code, expected, kind) => {
  expect(statusError(act, readStatus(code, ''))).toMatchObject({ code: expected, kind, message: expect.stringContaining(`HTTP ${code}`) });
});

test("a proxy's HTML page is reported as shortened text", () => {
  const { message } = readStatus(502, `<html><h1>Bad\n gateway</h1>${'x'.repeat(1_000)}</html>`);
  expect(message.startsWith('HTTP 502: Bad gateway xxx')).toBe(true);
  expect(message.length).toBeLessThan(400);
});

test('an untrusted certificate is a credentials error, not an unreachable server', () => {
  const why = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  expect(isDistrusted(new Error('outer', { cause: why }))).toBe(true);
  expect(isDistrusted(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))).toBe(false);
  expect(unansweredError(act, why)).toMatchObject({
    code: 'SVC_CREDENTIALS',
    message: 'The API server of prod shows a certificate that is not trusted: self-signed certificate',
  });
});
