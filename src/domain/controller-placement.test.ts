import { expect, test } from 'vitest';
import { someResources } from '../../test/support/builders.ts';
import { chooseController } from './controller-placement.ts';

test('without a configuration it is here as long as no other place is enabled', () => {
  expect(chooseController(undefined, ['local'])).toEqual({ kind: 'here' });
  expect(chooseController(undefined, [])).toEqual({ kind: 'here' });
});

test('without a configuration an enabled place gets a small machine on demand', () => {
  const choice = chooseController(undefined, ['local', 'aws']);
  expect(choice).toMatchObject({
    kind: 'elsewhere',
    alternatives: { order: 'any', choices: [{ cpus: { value: 4, atLeast: true }, useSpot: false, diskSizeGb: 200, cloud: undefined }] },
  });
});

test('a configuration that names this machine keeps it here, whatever is enabled', () => {
  const configured = { order: 'any', choices: [someResources({ cloud: 'local' })] } as const;
  expect(chooseController(configured, ['local', 'aws'])).toEqual({ kind: 'here' });
});

test('a configuration is taken as it is, with four vCPUs where it asks for no size', () => {
  const sized = someResources({ cloud: 'aws', cpus: { value: 2, atLeast: false } });
  const unsized = someResources({ cloud: 'ssh', region: 'rack' });
  const typed = someResources({ cloud: 'aws', instanceType: 't3.large' });
  const choice = chooseController({ order: 'ordered', choices: [sized, unsized, typed] }, ['local']);
  expect(choice).toEqual({
    kind: 'elsewhere',
    alternatives: { order: 'ordered', choices: [sized, { ...unsized, cpus: { value: 4, atLeast: true } }, typed] },
  });
});

test('without a configuration it goes where the replicas are to be, as all requests pass through it', () => {
  const near = {
    order: 'any',
    choices: [
      someResources({ cloud: 'aws', region: 'us-east-2' }),
      someResources({ cloud: 'aws', region: 'us-east-2', useSpot: true }),
      someResources({ cloud: 'ssh', region: 'rack' }),
    ],
  } as const;
  const choice = chooseController(undefined, ['local', 'aws', 'ssh'], near);
  expect(choice.kind === 'elsewhere' && choice.alternatives.choices.map(({ cloud, region, useSpot }) => [cloud, region, useSpot])).toEqual([
    ['aws', 'us-east-2', false],
    ['ssh', 'rack', false],
  ]);
});

test('for a service that is to be here it stays here, whatever is enabled', () => {
  const near = { order: 'any', choices: [someResources({ cloud: 'local' })] } as const;
  expect(chooseController(undefined, ['local', 'aws'], near)).toEqual({ kind: 'here' });
});

test('a cluster gets no controller unless high availability asks for it', () => {
  expect(chooseController(undefined, ['local', 'kubernetes'])).toEqual({ kind: 'here' });
  const inCluster = {
    order: 'any',
    choices: [someResources({ cloud: 'kubernetes', region: 'prod' }), someResources({ cloud: 'local' })],
  } as const;
  expect(chooseController(undefined, ['local', 'aws', 'kubernetes'], inCluster)).toEqual({ kind: 'here' });
  expect(() => chooseController(inCluster, ['local', 'kubernetes'])).toThrow('made to survive its node');
});

test('beside a cluster, a service that may be anywhere has its controller on a machine of another place', () => {
  const anywhere = { order: 'any', choices: [someResources()] } as const;
  const choice = chooseController(undefined, ['local', 'aws', 'kubernetes', 'ssh'], anywhere);
  expect(choice.kind === 'elsewhere' && choice.alternatives.choices.map(({ cloud }) => cloud)).toEqual(['aws', 'ssh']);
});
