import { expect, test } from 'vitest';
import { mergePod } from './merge-pod.ts';
import { podConfigProblems } from './pod-config.ts';

const said = (pod: Readonly<Record<string, unknown>>): readonly string[] =>
  podConfigProblems(pod).map(({ path, message, hint }) => `${path.join('.')}: ${message}${hint === undefined ? '' : ` (${hint})`}`);

test('common pod fields are accepted', () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { labels: { team: 'ml' }, annotations: { 'prometheus.io/scrape': 'true' } },
    spec: {
      serviceAccountName: 'reader',
      runtimeClassName: 'nvidia',
      restartPolicy: 'Never',
      priorityClassName: 'high',
      securityContext: { runAsUser: 1000 },
      nodeSelector: { pool: 'a' },
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      volumes: [{ name: 'data', hostPath: { path: '/data' } }],
      initContainers: [{ name: 'fetch', image: 'fetcher' }],
      containers: [
        { env: [{ name: 'A', value: '1' }], volumeMounts: [{ name: 'data', mountPath: '/data' }], imagePullPolicy: 'Always' },
        { name: 'side', image: 'sidecar', command: ['run'] },
      ],
      terminationGracePeriodSeconds: null,
    },
  };
  expect(said(pod)).toEqual([]);
});

test.each([
  [{ spce: {} }, "spce: a pod has no field 'spce' (Did you mean 'spec'?)"],
  [{ kind: 'Deployment' }, "kind: must be Pod, found 'Deployment'"],
  [{ spec: [] }, 'spec: expected a map of fields'],
  [{ spec: { nodeSelectr: {} } }, "spec.nodeSelectr: the spec of a pod has no field 'nodeSelectr' (Did you mean 'nodeSelector'?)"],
  [{ spec: { tolerations: {} } }, 'spec.tolerations: expected a list'],
  [{ spec: { hostNetwork: 'yes' } }, 'spec.hostNetwork: expected true or false'],
  [{ spec: { nodeSelector: { a: 1 } } }, 'spec.nodeSelector.a: expected text'],
  [{ metadata: { name: 'x' } }, 'metadata.name: pods are named by svc, which finds them by their names'],
  [{ metadata: { labels: { 'svc-key': 'x' } } }, 'metadata.labels.svc-key: names that begin with svc- are what svc finds its pods by'],
  [{ metadata: { annotations: { a: 1 } } }, 'metadata.annotations.a: expected text'],
  [{ spec: { volumes: [{ name: 'svc' }] } }, "spec.volumes.0.name: 'svc' is a volume of svc's own"],
  [{ spec: { containers: [{ name: 'side' }] } }, "spec.containers.0: needs 'image'"],
  [{ spec: { initContainers: [{ image: 'a' }] } }, "spec.initContainers.0: needs 'name'"],
  [{ spec: { containers: ['main'] } }, 'spec.containers.0: expected a map of fields'],
  [{ spec: { containers: [{ volumeMounts: [{ mountPath: '/svc/' }] }] } }, "/svc is where svc keeps a replica's files"],
])('%j is refused', (pod, expected) => {
  expect(said(pod).join('\n')).toContain(expected);
});

test('fields that would break a replica are refused with the reason', () => {
  expect(said({ spec: { restartPolicy: 'Always' } }).join()).toContain('svc replaces replicas itself');
  expect(said({ spec: { shareProcessNamespace: true } }).join()).toContain('process 1 of the container');
  expect(said({ spec: { ephemeralContainers: [] } }).join()).toContain('kubectl debug');
  expect(said({ spec: { containers: [{ name: 'main', args: ['x'] }] } }).join()).toContain("args of the container 'main'");
  expect(said({ spec: { containers: [{}, { name: 'main' }] } }).join()).toContain("two containers are called 'main'");
});

test('a partial pod is merged by the rules of Kubernetes patches', () => {
  const base = {
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 30,
      tolerations: [{ key: 'a' }],
      containers: [{ name: 'main', image: 'one', env: [{ name: 'A', value: '1' }], args: ['x'] }],
      volumes: [{ name: 'svc', emptyDir: {} }],
    },
  };
  const patch = {
    metadata: { labels: { team: 'ml' } },
    spec: {
      terminationGracePeriodSeconds: null,
      tolerations: [{ key: 'b' }],
      containers: [
        {
          env: [
            { name: 'B', value: '2' },
            { name: 'A', value: '3' },
          ],
          args: ['y'],
        },
        { name: 'side', image: 'two' },
      ],
      volumes: [{ name: 'data' }],
    },
  };
  expect(mergePod(base, patch)).toEqual({
    metadata: { labels: { team: 'ml' } },
    spec: {
      restartPolicy: 'Never',
      tolerations: [{ key: 'a' }, { key: 'b' }],
      containers: [
        {
          name: 'main',
          image: 'one',
          env: [
            { name: 'A', value: '3' },
            { name: 'B', value: '2' },
          ],
          args: ['y'],
        },
        { name: 'side', image: 'two' },
      ],
      volumes: [{ name: 'svc', emptyDir: {} }, { name: 'data' }],
    },
  });
});
