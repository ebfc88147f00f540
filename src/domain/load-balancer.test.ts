import { expect, test } from 'vitest';
import { loadBalancerSettings, passedSettings, passSettings, readLoadBalancer, withDefaults } from './load-balancer.ts';

const defaults = readLoadBalancer({});

test('a field that another field replaces the default of keeps its own value', () => {
  const spec = readLoadBalancer({ stream_timeout_seconds: 100, idle_timeout_seconds: 20 });
  expect(spec).toEqual({ ...defaults, firstByteTimeoutSeconds: 100, idleTimeoutSeconds: 20 });
});

test('stored settings keep their values, and missing ones get their defaults', () => {
  const { maxHeaderCount: _, ...stored } = { ...defaults, queueSize: 0, retryUnsafe: true };
  expect(withDefaults(stored)).toEqual({ ...defaults, queueSize: 0, retryUnsafe: true });
});

test('every setting that reaches the balancer by itself has a value or null', () => {
  const passed = Object.entries(passSettings(defaults));
  expect(passed.map(([name]) => name)).toEqual(passedSettings.map(({ passedAs }) => passedAs));
  for (const [, value] of passed) expect(value).toBeDefined();
});

test('the name of a setting ends in Seconds if and only if it is a time', () => {
  const named = loadBalancerSettings.filter(([, { name }]) => name !== undefined);
  expect(named.filter(([, { name }]) => name?.endsWith('Seconds'))).toEqual(named.filter(([, { kind }]) => kind === 'seconds'));
});

test('a field that replaces a default exists and is of the same kind', () => {
  const fields = new Map(loadBalancerSettings);
  const replaced = loadBalancerSettings.flatMap(([, { kind, otherwise }]) => (otherwise === undefined ? [] : [{ kind, otherwise }]));
  expect(replaced.map(({ otherwise }) => fields.get(otherwise)?.kind)).toEqual(replaced.map(({ kind }) => kind));
});
