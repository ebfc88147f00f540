import { expect, test } from 'vitest';
import { FakeKubeApi } from '../../test/support/fake-kube-api.ts';
import { readPolicyVersion } from './policy-version.ts';

/** The answer of an API server with these versions of a group. */
const groups = (...versions: readonly string[]) => ({
  groups: [{ name: 'policy', versions: versions.map((version) => ({ groupVersion: `policy/${version}`, version })) }],
});

test.each([
  [groups('v1beta1'), 'policy/v1beta1'],
  [groups('v1', 'v1beta1'), 'policy/v1'],
  [null, 'policy/v1'],
])('the stable PodDisruptionBudget version is used where the Kubernetes cluster has it', async (answer, version) => {
  const api = new FakeKubeApi();
  api.texts.set('/apis', JSON.stringify(answer));
  expect(await readPolicyVersion(api, undefined)).toBe(version);
});
