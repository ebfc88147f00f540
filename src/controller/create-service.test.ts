import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { anOffer } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { failureOf } from '../../test/support/failure-of.ts';
import { placesOf } from '../../test/support/places.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { defaultConfig } from '../domain/config.ts';
import type { ControllerHost } from '../domain/controller-host.ts';
import { FakePlace } from '../providers/fake/fake-place.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import { SvcError } from '../shared/errors.ts';
import { noFence } from '../shared/fence.ts';
import { homePaths, servicePaths } from '../shared/paths.ts';
import { seededRandom } from '../shared/random.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { createService, readServiceTask, type ServiceRequest } from './create-service.ts';
import type { DaemonContext } from './daemon-context.ts';

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

test('a service whose recording was not confirmed keeps its files, as it may be recorded; one that was refused leaves none', async () => {
  await withTempHome(async (home) => {
    const clock = new FakeClock();
    const store = await openStore({ path: join(home, 'state.db'), clock });
    const add = store.services.add.bind(store.services);
    const context = aDaemonContext(home, store, clock);
    const plain = { ...request, source: 'resources: {ports: 8080}\nrun: serve\nservice:\n  readiness_probe: /\n' };
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

function aDaemonContext(home: string, store: Store, clock: FakeClock): DaemonContext {
  return {
    paths: homePaths(home, 1000),
    store,
    clock,
    random: seededRandom(1),
    log: pino({ level: 'silent' }),
    startedAt: 0,
    version: 'test',
    serviceLimit: 1,
    host: undefined,
    term: undefined,
    fence: noFence,
    creating: new Set(),
    config: () => Promise.resolve(defaultConfig),
    ...placesOf(new FakeProvider(new FakePlace(clock, seededRandom(1), [anOffer({ provider: 'fake', hourlyUsd: 1 })]))),
  };
}
