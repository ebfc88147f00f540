import { expect, test } from 'vitest';
import { someResources } from '../../../test/support/builders.ts';
import { problemOf } from '../../../test/support/problem-of.ts';
import { defaultConfig, type Config, type ControllerConfig } from '../../domain/config.ts';
import type { KubeContexts } from '../../kubernetes/contexts.ts';
import { SvcError } from '../../shared/errors.ts';
import { designOf } from './design-of.ts';
import { chooseSite, needKubernetes } from './site.ts';

const configured = (controller: Partial<ControllerConfig> = {}, kubernetes: Partial<Config['kubernetes']> = {}): Config => ({
  ...defaultConfig,
  serve: { controller: { ...defaultConfig.serve.controller, highAvailability: true, ...controller } },
  kubernetes: { ...defaultConfig.kubernetes, ...kubernetes },
});

/** A kubeconfig with two contexts, of which each has a namespace called after it. */
const contexts: KubeContexts = {
  names: ['prod', 'staging'],
  current: 'staging',
  has: (name) => ['prod', 'staging'].includes(name),
  cluster: (name) => ({
    context: name,
    namespace: `${name}-namespace`,
    server: `https://${name}.example`,
    insecure: false,
    login: 'token',
    proxied: false,
    isInside: false,
    cluster: {},
    user: {},
  }),
};

test('the controller goes where its resources say, else to the current context of those that may be used', () => {
  const named = { order: 'any', choices: [someResources({ cloud: 'kubernetes', region: 'prod' })] } as const;
  expect(chooseSite(configured({ resources: named }), undefined, contexts)).toEqual({ context: 'prod', namespace: 'prod-namespace' });
  expect(chooseSite(configured(), undefined, contexts).context).toBe('staging');
  expect(chooseSite(configured({}, { allowedContexts: ['prod'] }), undefined, contexts).context).toBe('prod');
  expect(chooseSite(configured({ resources: named }), 'staging', contexts).context).toBe('staging');
});

test('the configured namespace goes before that of the context', () => {
  expect(chooseSite(configured({}, { namespace: 'serving' }), undefined, contexts).namespace).toBe('serving');
  expect(chooseSite(configured({}, { contexts: { staging: { namespace: 'its-own' } } }), undefined, contexts).namespace).toBe('its-own');
});

test('resources of another place cannot survive their machine', () => {
  const resources = { order: 'any', choices: [someResources({ cloud: 'aws' })] } as const;
  expect(problemOf(() => chooseSite(configured({ resources }), undefined, contexts))).toMatchObject({
    code: 'SVC_NEEDS_KUBERNETES',
    message: expect.stringContaining('asks for aws'),
  });
});

test('without a cluster that can be used it is said why there is none', async () => {
  const check = { enabled: false, summary: 'There is no kubeconfig.', remedies: [], details: [], sharedPorts: undefined };
  const states = async () => [{ name: 'kubernetes', check, provider: undefined }];
  await expect(needKubernetes({ states })).rejects.toMatchObject({
    code: 'SVC_NEEDS_KUBERNETES',
    message: 'serve.controller.high_availability is true, and no Kubernetes cluster can be used: There is no kubeconfig.',
  });
  expect(problemOf(() => chooseSite(configured({}, { allowedContexts: ['gone'] }), undefined, contexts))).toBeInstanceOf(SvcError);
});

const known = { key: 'c0ffee', policyVersion: 'policy/v1', outsideHost: undefined } as const;
const site = { context: 'prod', namespace: 'serving' } as const;

test('without an image it is said how to make one and where to name it', () => {
  expect(problemOf(() => designOf(configured(), site, known))).toMatchObject({
    code: 'SVC_NO_CONTROLLER_IMAGE',
    hint: expect.stringContaining('docker build -t REGISTRY/svc:TAG . && docker push REGISTRY/svc:TAG'),
  });
});

test('what is asked for is what the design has, and a configured price counts every pod', () => {
  const resources = {
    order: 'any',
    choices: [
      someResources({ cloud: 'kubernetes', cpus: { value: 2, atLeast: true }, memory: { value: 4, atLeast: false }, diskSizeGb: 30 }),
    ],
  } as const;
  const price = { cpu: 0.04, memoryGb: 0.01, accelerators: {} };
  const design = designOf(configured({ image: 'svc:1', resources, balancers: 2 }, { price, storageClass: 'fast' }), site, known);
  expect(design).toMatchObject({
    cpus: 2,
    memoryGb: 4,
    diskGb: 30,
    database: 'sqlite',
    storageClass: 'fast',
    publicHost: 'svc-endpoints.serving.svc',
  });
  expect(design.hourlyUsd).toBeCloseTo(2 * 0.04 + 4 * 0.01 + 2 * (0.25 * 0.04 + 0.5 * 0.01));
  expect(
    designOf(configured({ image: 'svc:1', database: 'postgres://db/svc' }), site, { ...known, outsideHost: '203.0.113.9' }),
  ).toMatchObject({
    database: 'postgresql',
    publicHost: '203.0.113.9',
  });
});
