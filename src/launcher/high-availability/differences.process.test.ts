import { expect, test } from 'vitest';
import { someResources } from '../../../test/support/builders.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { aDesign, applied, withFakeKubeApi } from '../../../test/support/high-availability.ts';
import type { Config, ControllerConfig } from '../../domain/config.ts';
import type { Resources } from '../../domain/task.ts';
import { readControllerRecord, type ControllerRecord } from '../controller-record.ts';
import { differencesInCluster, madeInCluster, refuseFixed, type MadeInCluster } from './differences.ts';
import { ensureInCluster, startInCluster, upgradeInCluster } from './high-availability.ts';

interface Made {
  readonly config: Config;
  readonly record: ControllerRecord;
  readonly made: MadeInCluster;
}

/** Deploys a controller in a Kubernetes cluster and returns its record and objects. */
async function bringUp(controller: Partial<ControllerConfig> = {}): Promise<Made> {
  let found: Made | undefined;
  await withFakeKubeApi(async (deps, api) => {
    const site = await ensureInCluster(deps);
    const record = readControllerRecord(deps.paths.controllerRecord);
    if (record === undefined) throw new Error('it was recorded');
    found = { config: await deps.config(), record, made: await madeInCluster(site, api, deps.signal) };
  }, controller);
  if (found === undefined) throw new Error('it was brought up');
  return found;
}

function changed(config: Config, controller: Partial<ControllerConfig>): Config {
  return { ...config, serve: { controller: { ...config.serve.controller, ...controller } } };
}

const asking = (resources: Partial<Resources>): Partial<ControllerConfig> => ({
  resources: { order: 'any', choices: [someResources({ cloud: 'kubernetes', diskSizeGb: 200, ...resources })] },
});

test.for<Partial<ControllerConfig>>([
  {},
  { database: 'postgres://db/svc' },
  asking({ cpus: { value: 1, atLeast: false }, diskSizeGb: 50 }),
])('a newly deployed controller has no differences (%j)', async (controller) => {
  const { config, record, made } = await bringUp(controller);
  expect(differencesInCluster(config, record, made)).toEqual([]);
  // As the API server writes quantities.
  const canonical = made.cpu === '1000m' ? { ...made, cpu: '1' } : made;
  expect(differencesInCluster(config, record, canonical)).toEqual([]);
});

const upgrade = 'To change that: svc controller upgrade';
const next = expect.stringMatching(/^That holds for the next controller: .*svc controller down/);

test.for<readonly [change: Partial<ControllerConfig>, what: string, remedy: unknown]>([
  [{ image: 'svc:2' }, 'serve.controller.image is svc:2, and its pods run svc:1.', upgrade],
  [
    { image: undefined },
    'serve.controller.image names no image, and its pods run svc:1.',
    expect.stringContaining('Name it in config.yaml'),
  ],
  [{ balancers: 5 }, 'serve.controller.balancers is 5, and the cluster is to run 2.', upgrade],
  [{ endpointService: 'NodePort' }, 'serve.controller.endpoint_service is NodePort, and the Service is of type ClusterIP.', upgrade],
  [
    { database: 'postgres://db/svc' },
    'The configuration keeps the state in PostgreSQL (serve.controller.database), and the controller has it on a volume.',
    next,
  ],
  [
    asking({ memory: { value: 4, atLeast: false } }),
    "serve.controller.resources makes memory 4G, and the controller's pod asks for 1Gi.",
    upgrade,
  ],
  [
    asking({ diskSizeGb: 300 }),
    "serve.controller.resources makes the disk_size 300G, and the controller's volume has 200G.",
    `${upgrade}; its storage class must let volumes grow.`,
  ],
  [
    asking({ diskSizeGb: 100 }),
    "serve.controller.resources makes the disk_size 100G, and the controller's volume has 200G.",
    expect.stringContaining('cannot become smaller'),
  ],
  [asking({ region: 'east' }), 'serve.controller.resources names the cluster east, and the controller lives in prod.', next],
  [
    asking({ cloud: 'aws' }),
    'serve.controller.resources asks for aws, and the controller lives in the cluster prod.',
    expect.stringContaining('infra: k8s'),
  ],
  [
    { highAvailability: false },
    'The controller lives in the cluster prod (namespace serving), and high_availability is not true in config.yaml any more.',
    expect.stringContaining('Set it to true again'),
  ],
])('configuration %j is reported: %s', async ([change, what, remedy]) => {
  const { config, record, made } = await bringUp();
  expect(differencesInCluster(changed(config, change), record, made)).toEqual([{ what, remedy }]);
});

test('a changed namespace or storage class applies to the next controller', async () => {
  const { config, record, made } = await bringUp();
  const kubernetes = { ...config.kubernetes, namespace: 'team', storageClass: 'fast' };
  expect(differencesInCluster({ ...config, kubernetes }, record, { ...made, storageClass: 'slow' })).toEqual([
    { what: 'config.yaml names the namespace team, and the controller lives in serving of prod.', remedy: next },
    { what: "kubernetes.high_availability.storage_class_name is fast, and the controller's volume is of slow.", remedy: next },
  ]);
});

test('all differences are reported; missing objects cause none', async () => {
  const { config, record, made } = await bringUp();
  const other = changed(config, { image: 'svc:2', balancers: 1 });
  expect(differencesInCluster(other, record, made).map(({ what }) => what)).toEqual([
    'serve.controller.image is svc:2, and its pods run svc:1.',
    'serve.controller.balancers is 1, and the cluster is to run 2.',
  ]);
  const nothing = await madeInCluster({ context: 'prod', namespace: 'serving' }, new FakeKubeApi(), AbortSignal.timeout(60_000));
  expect(differencesInCluster(other, record, nothing)).toEqual([]);
});

const aDatabase: Partial<ControllerConfig> = { database: 'postgres://db/svc' };

test.for<readonly [before: Partial<ControllerConfig>, after: Partial<ControllerConfig>, why: string]>([
  [{}, aDatabase, 'keeps the state in PostgreSQL (serve.controller.database), and the controller has it on a volume. What the one knows'],
  [aDatabase, {}, 'keeps the state on a volume (serve.controller.database), and the controller has it in PostgreSQL. What the one knows'],
  [{}, asking({ diskSizeGb: 100 }), "the disk_size 100G, and the controller's volume has 200G. A volume cannot become smaller."],
])('an upgrade or start from %j to %j is refused before any change', async ([before, after, why]) => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    api.asked.length = 0;
    const config = changed(await deps.config(), { database: undefined, ...after });
    const other = { ...deps, config: async () => config };
    for (const change of [startInCluster, upgradeInCluster])
      await expect(change(other)).rejects.toMatchObject({
        code: 'SVC_CONTROLLER_IMMUTABLE',
        message: expect.stringContaining(why),
        hint: expect.stringMatching(/^Write it in config.yaml as it was .*svc controller down/),
      });
    expect(applied(api)).toEqual([]);
  }, before);
});

test('a volume keeps its class; an unused one does not block changes', async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    const volume = '/api/v1/namespaces/serving/persistentvolumeclaims/svc-controller';
    const left = { metadata: { name: 'svc-controller' }, spec: { storageClassName: 'slow', resources: { requests: { storage: '900G' } } } };
    api.put(volume, left);
    const config = await deps.config();
    const fast = { ...config, kubernetes: { ...config.kubernetes, storageClass: 'fast' } };
    const inDatabase = { ...deps, config: async () => changed(fast, { balancers: 5 }) };
    await startInCluster(inDatabase);
    expect(applied(api)).toContain('/apis/apps/v1/namespaces/serving/deployments/svc-balancer');
  }, aDatabase);
  const { made } = await bringUp();
  expect(() => refuseFixed(aDesign({ storageClass: 'fast' }), { ...made, storageClass: 'slow' })).toThrow('A volume keeps its class.');
  expect(() => refuseFixed(aDesign({ storageClass: 'fast', diskGb: 300 }), { ...made, storageClass: 'fast' })).not.toThrow();
});
