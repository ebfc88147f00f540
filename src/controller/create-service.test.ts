import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { failureOf } from '../../test/support/failure-of.ts';
import type { ControllerHost } from '../domain/controller-host.ts';
import { homePaths } from '../shared/paths.ts';
import { readServiceTask, type ServiceRequest } from './create-service.ts';

const request: ServiceRequest = {
  source: 'resources: {ports: 80}\nrun: serve\nservice:\n  readiness_probe: /\n  load_balancer:\n    metrics_port: 9100\n',
  file: 'chat.yaml',
  envs: {},
  secrets: {},
};
const here = { paths: homePaths('/home/of/a/test', 1000), clock: new FakeClock(), host: undefined } as const;
const inCluster: ControllerHost = {
  key: 'c0ffee',
  publicHost: 'svc-endpoints.serving.svc',
  addresses: [],
  place: { provider: 'kubernetes', region: 'prod', zone: null, instanceType: 'pods', hourlyUsd: 0 },
  whenIdle: 'exit',
  balancers: { tokenFile: '/token', port: 30_000, namespace: 'serving' },
};

test('a port for metrics is refused where balancers are in a cluster, rather than ignored', async () => {
  expect((await readServiceTask(request, here)).service?.loadBalancer.metricsPort).toBe(9_100);
  const failure = await failureOf(readServiceTask(request, { ...here, host: inCluster }));
  expect(failure).toMatchObject({ code: 'SVC_NOT_SUPPORTED', message: expect.stringContaining('service.load_balancer.metrics_port') });
  expect(JSON.stringify(failure)).toContain('svc serve metrics NAME');
});
