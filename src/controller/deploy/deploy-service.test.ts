import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { aDaemonContext } from '../../../test/support/daemon-context.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { failureOf } from '../../../test/support/failure-of.ts';
import { providersOf } from '../../../test/support/providers.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { RemoteControllerInfo } from '../../domain/remote-controller-info.ts';
import { FakeCloud } from '../../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import { SvcError } from '../../shared/errors.ts';
import { homePaths, servicePaths } from '../../shared/paths.ts';
import { seededRandom } from '../../shared/random.ts';
import { parseTask } from '../../spec/parse-task.ts';
import { openStore } from '../../store/open-store.ts';
import { firstPortOf } from './endpoint-port.ts';
import { createService, acceptServiceTask, type ServiceRequest } from './deploy-service.ts';

const request: ServiceRequest = {
  source: 'resources: {ports: 80}\nrun: serve\nservice:\n  readiness_probe: /\n  load_balancer:\n    metrics_port: 9100\n',
  file: 'chat.yaml',
  envs: {},
  secrets: {},
};
const plain = { ...request, source: 'resources: {ports: 8080}\nrun: serve\nservice:\n  readiness_probe: /\n' };
const aProvider = (clock: FakeClock): FakeProvider =>
  new FakeProvider(new FakeCloud(clock, seededRandom(1), [anOffer({ provider: 'fake', hourlyUsd: 1 })]));
const deps = { paths: homePaths('/home/of/a/test', 1000), clock: new FakeClock(), controllerHost: undefined } as const;
const kubernetesHost: RemoteControllerInfo = {
  key: 'c0ffee',
  publicHost: 'svc-endpoints.serving.svc',
  addresses: [],
  machine: { provider: 'kubernetes', region: 'prod', zone: null, instanceType: 'pods', hourlyUsd: 0 },
  whenIdle: 'exit',
  balancers: { tokenFile: '/token', port: 30_000, namespace: 'serving' },
};

test('a metrics port is refused where edge proxies in a Kubernetes cluster serve', async () => {
  expect((await acceptServiceTask(parseTask(request), request, deps)).service?.loadBalancer.metricsPort).toBe(9_100);
  const failure = await failureOf(acceptServiceTask(parseTask(request), request, { ...deps, controllerHost: kubernetesHost }));
  expect(failure).toMatchObject({ code: 'SVC_NOT_SUPPORTED', message: expect.stringContaining('service.load_balancer.metrics_port') });
  expect(JSON.stringify(failure)).toContain('svc serve metrics NAME');
});

test('the port of a service that the database lacks is not assigned again', async () => {
  await withTempHome(async (home) => {
    const clock = new FakeClock();
    const store = await openStore({ path: join(home, 'state.db'), clock });
    const context = aDaemonContext(home, store, { clock, ...providersOf(aProvider(clock)) });
    const port = firstPortOf(home);
    mkdirSync(servicePaths(context.paths, 'feedbeef').dir, { recursive: true });
    context.ports.take({ name: 'lost', key: 'feedbeef', port });
    try {
      expect((await createService(context, plain)).port).toBeGreaterThan(port);
      await expect(createService(context, { ...plain, port })).rejects.toMatchObject({ code: 'SVC_PORT_BUSY' });
    } finally {
      await store.close();
    }
  });
});

test('a service with an unconfirmed record keeps its files; a refused one leaves none', async () => {
  await withTempHome(async (home) => {
    const clock = new FakeClock();
    const store = await openStore({ path: join(home, 'state.db'), clock });
    const add = store.services.add.bind(store.services);
    const context = aDaemonContext(home, store, { clock, ...providersOf(aProvider(clock)) });
    try {
      store.services.add = async (...args) => {
        await add(...args);
        throw new SvcError('SVC_DATABASE', 'The state database went away during a change, and cannot tell whether it was made.');
      };
      await expect(createService(context, plain)).rejects.toMatchObject({ code: 'SVC_DATABASE' });
      const [service] = await store.services.list();
      expect(existsSync(servicePaths(context.paths, service?.key ?? '').versionDir(1))).toBe(true);
      store.services.add = () => Promise.reject(new SvcError('SVC_TOO_MANY_SERVICES', 'The controller has as many as it may.'));
      await expect(createService(context, plain)).rejects.toMatchObject({ code: 'SVC_TOO_MANY_SERVICES' });
      expect(readdirSync(context.paths.servicesDir)).toEqual([service?.key]);
    } finally {
      await store.close();
    }
  });
});
