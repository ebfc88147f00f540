import { expect, test } from 'vitest';
import { someResources } from '../../test/support/builders.ts';
import { chooseController, serviceLimit } from './controller-placement.ts';

test('without a configuration and other enabled providers, the controller is local', () => {
  expect(chooseController(undefined, ['local'])).toEqual({ kind: 'local' });
  expect(chooseController(undefined, [])).toEqual({ kind: 'local' });
});

test('without a configuration, an enabled provider gets a small on-demand machine', () => {
  const choice = chooseController(undefined, ['local', 'aws']);
  expect(choice).toMatchObject({
    kind: 'remote',
    alternatives: { order: 'any', choices: [{ cpus: { value: 4, atLeast: true }, useSpot: false, diskSizeGb: 200, cloud: undefined }] },
  });
});

test('with local configured, the controller is local although other providers are enabled', () => {
  const configured = { order: 'any', choices: [someResources({ cloud: 'local' })] } as const;
  expect(chooseController(configured, ['local', 'aws'])).toEqual({ kind: 'local' });
});

test('a configuration is used as it is, with four vCPUs by default', () => {
  const sized = someResources({ cloud: 'aws', cpus: { value: 2, atLeast: false } });
  const unsized = someResources({ cloud: 'ssh', region: 'rack' });
  const typed = someResources({ cloud: 'aws', instanceType: 't3.large' });
  const choice = chooseController({ order: 'ordered', choices: [sized, unsized, typed] }, ['local']);
  expect(choice).toEqual({
    kind: 'remote',
    alternatives: { order: 'ordered', choices: [sized, { ...unsized, cpus: { value: 4, atLeast: true } }, typed] },
  });
});

test('without a configuration, the controller goes to the location of the replicas', () => {
  const near = {
    order: 'any',
    choices: [
      someResources({ cloud: 'aws', region: 'us-east-2' }),
      someResources({ cloud: 'aws', region: 'us-east-2', useSpot: true }),
      someResources({ cloud: 'ssh', region: 'rack' }),
    ],
  } as const;
  const choice = chooseController(undefined, ['local', 'aws', 'ssh'], near);
  expect(choice.kind === 'remote' && choice.alternatives.choices.map(({ cloud, region, useSpot }) => [cloud, region, useSpot])).toEqual([
    ['aws', 'us-east-2', false],
    ['ssh', 'rack', false],
  ]);
});

test('for a local service the controller is local although other providers are enabled', () => {
  const near = { order: 'any', choices: [someResources({ cloud: 'local' })] } as const;
  expect(chooseController(undefined, ['local', 'aws'], near)).toEqual({ kind: 'local' });
});

test('a Kubernetes cluster gets a controller only with high availability', () => {
  expect(chooseController(undefined, ['local', 'kubernetes'])).toEqual({ kind: 'local' });
  const inCluster = {
    order: 'any',
    choices: [someResources({ cloud: 'kubernetes', region: 'prod' }), someResources({ cloud: 'local' })],
  } as const;
  expect(chooseController(undefined, ['local', 'aws', 'kubernetes'], inCluster)).toEqual({ kind: 'local' });
  expect(() => chooseController(inCluster, ['local', 'kubernetes'])).toThrow('made to survive its node');
});

test('a service for any provider gets its controller outside Kubernetes', () => {
  const anywhere = { order: 'any', choices: [someResources()] } as const;
  const choice = chooseController(undefined, ['local', 'aws', 'kubernetes', 'ssh'], anywhere);
  expect(choice.kind === 'remote' && choice.alternatives.choices.map(({ cloud }) => cloud)).toEqual(['aws', 'ssh']);
});

test.each([
  [4, 16, 16],
  [2, 23.4, 8],
  [8, 7.9, 7],
  [1, 0.5, 1],
])('%d vCPUs and %d GiB run %d services', (vcpus, memoryGib, limit) => {
  expect(serviceLimit(vcpus, memoryGib)).toBe(limit);
});
