import { expect, test } from 'vitest';
import { someResources } from '../../../test/support/builders.ts';
import { problemOf } from '../../../test/support/problem-of.ts';
import { defaultConfig, type Config, type ControllerConfig } from '../../domain/config.ts';
import type { KubeContexts } from '../../kubernetes/contexts.ts';
import { SvcError } from '../../shared/errors.ts';
import { designOf } from './design.ts';
import { chooseSite, needKubernetes } from './site.ts';

const configured = (controller: Partial<ControllerConfig> = {}, kubernetes: Partial<Config['kubernetes']> = {}): Config => ({
  ...defaultConfig,
  serve: { controller: { ...defaultConfig.serve.controller, highAvailability: true, ...controller } },
  kubernetes: { ...defaultConfig.kubernetes, ...kubernetes },
});

/** A kubeconfig with two contexts, each with a namespace of the same name. */
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

test('the context comes from the resources, otherwise the current allowed one', () => {
  const named = { order: 'any', choices: [someResources({ cloud: 'kubernetes', region: 'prod' })] } as const;
  expect(chooseSite(configured({ resources: named }), undefined, contexts)).toEqual({ context: 'prod', namespace: 'prod-namespace' });
  expect(chooseSite(configured(), undefined, contexts).context).toBe('staging');
  expect(chooseSite(configured({}, { allowedContexts: ['prod'] }), undefined, contexts).context).toBe('prod');
  expect(chooseSite(configured({ resources: named }), 'staging', contexts).context).toBe('staging');
});

test("the configured namespace has precedence over the context's", () => {
  expect(chooseSite(configured({}, { namespace: 'serving' }), undefined, contexts).namespace).toBe('serving');
  expect(chooseSite(configured({}, { contexts: { staging: { namespace: 'its-own' } } }), undefined, contexts).namespace).toBe('its-own');
});

test('resources of another provider are refused for high availability', () => {
  const resources = { order: 'any', choices: [someResources({ cloud: 'aws' })] } as const;
  expect(problemOf(() => chooseSite(configured({ resources }), undefined, contexts))).toMatchObject({
    code: 'SVC_NEEDS_KUBERNETES',
    message: expect.stringContaining('asks for aws'),
  });
});

test('without a usable Kubernetes cluster, the error has the reason', async () => {
  const check = { enabled: false, summary: 'There is no kubeconfig.', remedies: [], details: [], sharedPorts: undefined };
  const states = async () => [{ name: 'kubernetes', check, provider: undefined }];
  await expect(needKubernetes({ states })).rejects.toMatchObject({
    code: 'SVC_NEEDS_KUBERNETES',
    message: 'serve.controller.high_availability is true, and no Kubernetes cluster can be used: There is no kubeconfig.',
  });
  expect(problemOf(() => chooseSite(configured({}, { allowedContexts: ['gone'] }), undefined, contexts))).toBeInstanceOf(SvcError);
});

test('a wait for a slow Kubernetes cluster is reported and can be interrupted', async () => {
  const check = { enabled: false, summary: 'answers slowly; trying again', remedies: [], details: [], sharedPorts: undefined };
  const late = new Promise(() => undefined);
  const states = async () => ['aws', 'kubernetes'].map((name) => ({ name, check, provider: undefined, late }));
  const stop = new AbortController();
  const steps: string[] = [];
  const waiting = needKubernetes(
    { states },
    (text) => {
      steps.push(text);
      stop.abort(new Error('interrupted'));
    },
    stop.signal,
  );
  await expect(waiting).rejects.toThrow('interrupted');
  expect(steps).toEqual(['Waiting for kubernetes, which answers slowly']);
});

const known = { key: 'c0ffee', policyVersion: 'policy/v1', outsideHost: undefined } as const;
const site = { context: 'prod', namespace: 'serving' } as const;

test('without an image, the hint has the build command and the setting', () => {
  expect(problemOf(() => designOf(configured(), site, known))).toMatchObject({
    code: 'SVC_NO_CONTROLLER_IMAGE',
    hint: expect.stringContaining('docker build -t REGISTRY/svc:TAG . && docker push REGISTRY/svc:TAG'),
  });
});

test('a design has the configured resources, and its price counts every pod', () => {
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
