import { expect, test } from 'vitest';
import { isDefiniteAnswer, pullCause } from './pod-trouble.ts';

const containerd = (cause: string) =>
  `Failed to pull image "registry.test/web:1": rpc error: code = Unknown desc = failed to pull and unpack image "registry.test/web:1": failed to resolve reference "registry.test/web:1": ${cause}`;

test.each([
  [containerd('registry.test/web:1: not found'), 'not found', true],
  [
    'Failed to pull image "web:1": rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/web:1": failed to resolve reference "docker.io/library/web:1": docker.io/library/web:1: not found',
    'not found',
    true,
  ],
  [
    containerd(
      'pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
    ),
    'pull access denied, repository does not exist or may require authorization',
    true,
  ],
  [
    containerd(
      'failed to do request: Head "https://registry.test/v2/web/manifests/1": dial tcp: lookup registry.test on 10.0.0.2:53: no such host',
    ),
    'no such host',
    false,
  ],
  [
    containerd('failed to do request: Head "https://registry.test/v2/web/manifests/1": dial tcp 10.1.2.3:443: connect: connection refused'),
    'connection refused',
    false,
  ],
  [
    containerd(
      'failed to do request: Head "https://registry.test/v2/web/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    ),
    'certificate signed by unknown authority',
    false,
  ],
  [
    containerd('unexpected status from HEAD request to https://registry.test/v2/web/manifests/1: 401 Unauthorized'),
    '401 Unauthorized',
    true,
  ],
  [
    'Failed to pull image "web:1": reading manifest 1 in docker.io/library/web: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required',
    'requested access to the resource is denied',
    true,
  ],
  [containerd('no match for platform in manifest: not found'), 'no match for platform in manifest', true],
  ['Back-off pulling image "web:1": ErrImagePull: ' + containerd('registry.test/web:1: not found'), 'not found', true],
  ['write /var/lib/x: no space left on device', 'no space left on device', false],
])('for %s the cause is %s', (said, cause, isDefinite) => {
  expect(pullCause(said, 'registry.test/web:1')).toBe(cause);
  expect(isDefiniteAnswer(said)).toBe(isDefinite);
});

test('a message that only reports the failure has no cause', () => {
  expect(pullCause('Back-off pulling image "web:1"', 'web:1')).toBeUndefined();
  expect(pullCause(undefined, 'web:1')).toBeUndefined();
});
