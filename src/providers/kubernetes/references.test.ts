import { expect, test } from 'vitest';
import { referencesOf } from './dry-runs.ts';

const of = (spec: Readonly<Record<string, unknown>>) => referencesOf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec });

test('claims and ConfigMaps are found wherever a pod names them, each once', () => {
  const volumes = [
    { name: 'a', persistentVolumeClaim: { claimName: 'models' } },
    { name: 'b', persistentVolumeClaim: { claimName: 'models' } },
    { name: 'c', configMap: { name: 'in-volume' } },
    { name: 'd', projected: { sources: [{ configMap: { name: 'projected' } }, { secret: { name: 's' } }] } },
    { name: 'e', emptyDir: {} },
  ];
  const env = [
    { name: 'A', value: 'a' },
    { name: 'B', valueFrom: { configMapKeyRef: { name: 'in-variable', key: 'k' } } },
  ];
  const containers = [{ name: 'main', env, envFrom: [{ configMapRef: { name: 'all-variables' } }] }];
  const initContainers = [{ name: 'init', env: [{ name: 'C', valueFrom: { configMapKeyRef: { name: 'of-init', key: 'k' } } }] }];
  expect(of({ volumes, containers, initContainers }).map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    'PersistentVolumeClaim models',
    'ConfigMap in-volume',
    'ConfigMap projected',
    'ConfigMap of-init',
    'ConfigMap in-variable',
    'ConfigMap all-variables',
  ]);
});

test('optional ConfigMaps, secrets and malformed specs give no references', () => {
  const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }];
  expect(of({ volumes: [{ name: 'a', configMap: { name: 'c', optional: true } }], containers: [{ env }] })).toEqual([]);
  expect(of({ volumes: 'none', containers: [1] })).toEqual([]);
});
